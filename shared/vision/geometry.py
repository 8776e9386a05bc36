"""Geometry of a face mesh: five points, crop regions, pose and how face-like it is.

Numpy on [468, 3] meshes in pixels; knows the canonical face and no picture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shared.imaging.geometry import Doubles, fit_similarity
from shared.vision.canonical import canonical
from shared.vision.protocols import Floats, SourceFace, Target

_EYE_A = [33, 133, 159, 145]
_EYE_B = [263, 362, 386, 374]
_MESH_MARGIN = 1.5
"""The mesh model was trained on crops this much larger than the face."""


class Pose(NamedTuple):
    """How a mesh sits in its picture. Angles in degrees."""

    yaw: float
    """About the face's own long axis, positive when it looks to the viewer's right."""
    roll: float
    """In the picture plane, clockwise positive, -180..180."""
    misfit: float
    """RMS distance in x, y to the mean face after a similarity fit, in eye distances."""


def pose_of(mesh: Floats) -> Pose:
    """Pose and misfit of one mesh [468, 3]."""
    mean = canonical().mean
    fit = fit_similarity(mean, mesh)
    offset = (fit.apply(mean.astype(np.float64)) - mesh)[:, :2]
    misfit = math.sqrt(float((offset**2).sum(1).mean())) / max(fit.scale, 1e-6)
    rotation = fit.rotation
    roll = math.atan2(rotation[1, 0], rotation[0, 0])
    gaze = -rotation[:, 2]
    across = math.cos(roll) * gaze[0] + math.sin(roll) * gaze[1]
    return Pose(math.degrees(math.atan2(across, -gaze[2])), math.degrees(roll), misfit)


def five_points(mesh: Floats) -> Floats:
    """[5, 2]: eye centres (mean of corners and lids), nose tip, mouth corners; viewer's left first."""
    p = mesh[:, :2]
    rows = [p[_EYE_A].mean(0), p[_EYE_B].mean(0), p[1] * 0.6 + p[4] * 0.4, p[61], p[291]]
    return np.stack(rows).astype(np.float32)


def five_of_68(points: Floats) -> Floats:
    """[5, 2] from the 68 points of iBUG 300-W: eye centres (means of 36-41 and 42-47), nose tip 30, mouth 48 and 54."""
    rows = [points[36:42].mean(0), points[42:48].mean(0), points[30], points[48], points[54]]
    return np.stack(rows).astype(np.float32)


def alignment(face: SourceFace | Target) -> Floats:
    """[5, 2]: the five points by which a face is aligned, a refiner's where it was sure and else the mesh's."""
    return five_points(face.mesh) if face.points is None else face.points


class Region(NamedTuple):
    """A turned square of the picture."""

    x: float
    y: float
    side: float
    angle: float
    """Radians, clockwise in the picture."""

    def matrix(self, size: int) -> Doubles:
        """[2, 3] affine map, picture to crop of size x size pixels."""
        k = size / self.side
        c, s = math.cos(self.angle) * k, math.sin(self.angle) * k
        half = size / 2
        return np.array([[c, s, half - c * self.x - s * self.y], [-s, c, half + s * self.x - c * self.y]], np.float64)


def region_from_points(points: Floats) -> Region:
    """First crop, from a detector's five points [5, 2].

    Its axis is the mean of the eye line and the normal of the line from eyes to mouth, which holds in profile.
    """
    p = points.astype(np.float64)
    eyes, mouth = (p[0] + p[1]) / 2, (p[3] + p[4]) / 2
    up, across = eyes - mouth, p[1] - p[0]
    long, wide = float(np.hypot(*up)), float(np.hypot(*across))
    axis = across / (wide + 1e-6) + np.array([-up[1], up[0]]) / (long + 1e-6)
    centre = (eyes + mouth) / 2 - up * 0.05
    side = max(wide * 3.4, long * 3.3, 1.0)
    return Region(float(centre[0]), float(centre[1]), side, math.atan2(axis[1], axis[0]))


def region_from_mesh(mesh: Floats) -> Region:
    """Crop for the next pass: the mesh's box along its own eye line, widened."""
    p = mesh[:, :2].astype(np.float64)
    across = p[263] - p[33]
    angle = math.atan2(across[1], across[0])
    c, s = math.cos(angle), math.sin(angle)
    turn = np.array([[c, s], [-s, c]])
    upright = p @ turn.T
    low, high = upright.min(0), upright.max(0)
    centre = ((low + high) / 2) @ turn
    return Region(float(centre[0]), float(centre[1]), max(float((high - low).max()) * _MESH_MARGIN, 1.0), angle)
