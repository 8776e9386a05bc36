"""Faces of a frame that nobody follows yet, found by the detector and measured by the mesh at full resolution.

Knows looks, the finder and the protocols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shared.imaging.look import Look
from shared.vision.finder import MEASURABLE, find_faces, fitting, side
from shared.vision.geometry import Region, five_points, region_from_mesh
from shared.vision.protocols import Detection, Floats, FoundFace
from shared.vision.tracking.flow import patch
from shared.vision.tracking.looks import Nearby, follow, locate, upright
from shared.vision.tracking.pursuit import Seen
from shared.vision.tracking.trail import Models, Pace

_CLOSE = 1280
"""Longest side at which the beginning of a scene is searched as thoroughly as a picture is."""
_SETTLE = 4
"""Further passes of the mesh model on a new face. Measured: without, the first mesh is 0.6 px off the later ones."""
_UPRIGHT = 256
_WIDE = 1.3
"""Of the mesh model's crop, for a detector that is to see one face again."""
_AGAIN = 0.3
"""Score that is enough for it."""


def detect(look: Look, models: Models, pace: Pace, *, thorough: bool = False, coarse: bool = False) -> list[Detection]:
    """Detections in pixels of the frame. `thorough`: also faces that are turned or fill the frame."""
    size = pace.coarse if coarse else pace.size
    small = look.small(_CLOSE if thorough else size)
    if thorough:
        faces = find_faces(small, models.detector, models.landmarker, min_score=pace.min_score)
        found = [Detection(face.box, face.score, five_points(face.mesh)) for face in faces]
    else:
        found = models.detector.detect(small, size=size, threshold=pace.min_score)
    width, height = look.size
    scale = np.array([width / small.shape[1], height / small.shape[0]], np.float32)
    return [
        replace(d, box=d.box * np.tile(scale, 2), points=d.points * scale) for d in found if d.score >= pace.min_score
    ]


def measure(look: Look, models: Models, detections: Sequence[Detection]) -> list[Seen]:
    """The detections that are faces, large enough for a mesh."""
    found: list[Seen] = []
    meshes = locate(look, models.landmarker, [d.points for d in detections])
    for detection, landmarks in zip(detections, meshes, strict=True):
        face = None if landmarks is None else fitting(detection, landmarks)
        if face is not None and side(face.box) >= MEASURABLE:
            found.append(_settled(look, face, models))
    return found


def _settled(look: Look, face: FoundFace, models: Models) -> Seen:
    """The face as it is seen once its crop comes from itself: otherwise it would drift there in its first frames."""
    for _ in range(_SETTLE):
        again = follow(look, models.landmarker, face.mesh)
        better = again and fitting(Detection(face.box, face.score, face.mesh), again)
        face = better or face
    return Seen(face, Nearby(look, face.mesh), patch(look, face.mesh), face.mesh, None)


def seen_again(look: Look, mesh: Floats, models: Models) -> bool:
    """Whether the detector sees a face where the mesh does: turned upright, for it finds no others."""
    around = region_from_mesh(mesh)
    back = upright(look, Region(around.x, around.y, around.side * _WIDE, around.angle), _UPRIGHT)
    if back is None:
        return False
    pixels = look.glimpse(back, (_UPRIGHT, _UPRIGHT))
    return bool(models.detector.detect(pixels, size=_UPRIGHT, threshold=_AGAIN))
