"""How much a pasted face trembles: a still with a face moves along a known path, and what was pasted is moved back.

Displacements against the mean of all frames, in blocks of 16 pixels, by least squares on the gradients
(Lucas and Kanade 1981), where a block has enough of them. Used by the tests and by `make bench-video`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from shared.events.choices import Options
from shared.imaging.canvas import Still
from shared.vision.finder import find_faces
from shared.vision.protocols import (
    Detector,
    Floats,
    Image,
    Landmarker,
    Memory,
    SourceFace,
    SwapOptions,
    Swapper,
    Target,
)
from shared.vision.tracking.casting import Known, choose
from shared.vision.tracking.finishing import finish
from shared.vision.tracking.tracker import Tracker
from shared.vision.tracking.trail import Models, Pace

BLOCK = 16
TEXTURED = 20.0
"""Smallest eigenvalue of a block's structure tensor, in squared grey levels per pixel."""


@dataclass(frozen=True)
class Jitter:
    """RMS in pixels, of the pasted face's blocks over frames and of the mesh's vertices."""

    pasted: float
    mesh: float
    flicker: float
    """RMS in grey levels of the pasted face about its own mean."""


def path(frames: int) -> Floats:
    """[frames, 2] in pixels: slow, smooth, nowhere whole."""
    t = np.arange(frames)
    return np.stack([20 + 8 * np.sin(t / 9), 14 + 6 * np.cos(t / 13)], 1).astype(np.float32)


def film(still: Image, way: Floats, grain: float = 0.0) -> list[Image]:
    """The still, moved by each step of the path; `grain`: deviation in grey levels."""
    random = np.random.default_rng(7)
    frames = [_shifted(still, step) for step in way]
    if grain:
        frames = [np.clip(f + random.normal(0, grain, f.shape), 0, 255).astype(np.uint8) for f in frames]
    return frames


def tracked(frames: Sequence[Image], detector: Detector, landmarker: Landmarker) -> list[Floats]:
    """The first face's mesh in each frame."""
    tracker = Tracker(Models(detector, landmarker), Pace())
    for index, frame in enumerate(frames):
        tracker.feed(Still(frame), index)
    tracks, _ = choose(finish(tracker.finish(), Pace().gap), Options(), Known())
    return [tracks.to_swap(index)[0].mesh for index in range(len(frames))]


def untracked(frames: Sequence[Image], detector: Detector, landmarker: Landmarker) -> list[Floats]:
    return [find_faces(frame, detector, landmarker)[0].mesh for frame in frames]


def swapped(
    frames: Sequence[Image], meshes: Sequence[Floats], swapper: Swapper, source: SourceFace, memory: Memory | None
) -> list[Image]:
    identity = swapper.prepare([source])
    results = [frame.copy() for frame in frames]
    for frame, mesh in zip(results, meshes, strict=True):
        swapper.swap(frame, [Target(mesh, identity, memory=memory)], SwapOptions())
    return results


def jitter(results: Sequence[Image], meshes: Sequence[Floats], way: Floats) -> Jitter:
    still = np.stack([_shifted(result, -step) for result, step in zip(results, way, strict=True)]).astype(np.float32)
    places = np.stack([mesh[:, :2] - step for mesh, step in zip(meshes, way, strict=True)])
    x0, y0 = np.floor(places.mean(0).min(0)).astype(int)
    x1, y1 = np.ceil(places.mean(0).max(0)).astype(int)
    grey = np.stack([cv2.cvtColor(frame[y0:y1, x0:x1].astype(np.uint8), cv2.COLOR_BGR2GRAY) for frame in still])
    apart = places - places.mean(0)
    return Jitter(
        pasted=_displacement(grey.astype(np.float32)),
        mesh=float(np.sqrt((apart**2).sum(-1).mean())),
        flicker=float(np.sqrt(still[:, y0:y1, x0:x1].var(0).mean())),
    )


def both(
    still: Image, source: SourceFace, tools: tuple[Detector, Landmarker, Swapper], frames: int = 48, grain: float = 0.0
) -> tuple[Jitter, Jitter]:
    """Tracked with remembered light, and each frame by itself."""
    detector, landmarker, swapper = tools
    way = path(frames)
    clip = film(still, way, grain)
    found: list[Jitter] = []
    ways: list[tuple[Callable[..., list[Floats]], Memory | None]] = [(tracked, Memory()), (untracked, None)]
    for measure, memory in ways:
        meshes = measure(clip, detector, landmarker)
        found.append(jitter(swapped(clip, meshes, swapper, source, memory), meshes, way))
    return found[0], found[1]


def _shifted(image: Image, step: Floats) -> Image:
    matrix = np.array([[1, 0, step[0]], [0, 1, step[1]]], np.float64)
    flags = cv2.INTER_CUBIC
    return cv2.warpAffine(image, matrix, image.shape[1::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE)


def _displacement(frames: Floats) -> float:
    """[frames, h, w] -> RMS over frames and textured blocks."""
    mean = frames.mean(0)
    gx, gy = np.gradient(mean, axis=1), np.gradient(mean, axis=0)
    total, count = 0.0, 0
    for y in range(0, mean.shape[0] - BLOCK, BLOCK):
        for x in range(0, mean.shape[1] - BLOCK, BLOCK):
            part = np.s_[y : y + BLOCK, x : x + BLOCK]
            slopes = np.stack([gx[part].ravel(), gy[part].ravel()], 1)
            tensor = slopes.T @ slopes
            if np.linalg.eigvalsh(tensor)[0] / BLOCK**2 < TEXTURED:
                continue
            rest = (frames[:, y : y + BLOCK, x : x + BLOCK] - mean[part]).reshape(len(frames), -1)
            moves = np.linalg.solve(tensor, slopes.T @ rest.T)
            total += float((moves**2).sum(0).mean())
            count += 1
    return float(np.sqrt(total / max(count, 1)))
