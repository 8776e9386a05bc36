"""All faces of a picture, refined and gated: a composition of a detector and a landmarker.

Pure over the two protocols. The numbers are measured in engine.md sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shared.vision.geometry import Pose, pose_of
from shared.vision.protocols import Detection, Detector, Floats, FoundFace, Image, Landmarker, Landmarks

MEASURABLE = 18.0
"""Faces with a shorter side are beyond the mesh model (its flag says 0.03 below 14 px); they are only measured."""
_SIZE = 640
_CLOSE = 1280
_SMALL_SIZES = (320, 160)
"""A face that fills a picture is lost at 640 and found smaller."""
_TURNS = (1, 3, 2)
"""Quarter turns against the clock, likeliest first."""
_CLOSE_BELOW = 32.0
"""A face this small in the network's own pixels is a reason to look closer: it found 13 px faces only in part."""
_FLAG = 0.8
_MISFIT = 0.055
_MISFIT_TURNED = 0.0585
"""Right fits 0.025-0.045, up to 0.058 on faces turned by 135 degrees; wrong ones 0.067-0.088."""
_UPSIDE_DOWN = 100.0
_SURE_SCORE = 0.6
_SURE_FIT = 0.045
"""Weaker than either, a face is also looked at turned: on its head it may fit better."""
_SAME = 0.4
"""Two faces whose centres are nearer than this part of their size are one."""


def find_faces(image: Image, detector: Detector, landmarker: Landmarker, *, min_score: float = 0.5) -> list[FoundFace]:
    """Faces from left to right by the centre of the box, then top to bottom, whatever order the detector has.

    Every face has a detector score of at least `min_score`, a mesh flag above 0.8 and a misfit below 0.055; where none
    has, detections too small to be judged (side below MEASURABLE) are returned, so that callers can name their size.
    """
    search = _Search(image, detector, landmarker, min_score)
    tiny: list[FoundFace] = []
    for detections in search.looks():
        faces, rejected = search.gate(detections)
        if faces:
            faces += search.look_closer(detections)
        doubtful = [d.box for d in rejected] + [f.box for f in faces if f.score < _SURE_SCORE or f.misfit > _SURE_FIT]
        faces += [face for box in doubtful for face in search.turn_around(box)]
        if faces:
            return _in_order(_distinct(faces + search.turn_with(faces)))
        tiny = tiny or search.measure(rejected)
    return _in_order(_distinct(tiny))


@dataclass(frozen=True)
class _Search:
    image: Image
    detector: Detector
    landmarker: Landmarker
    min_score: float

    def looks(self) -> Iterator[list[Detection]]:
        """Ever more costly ways to look, for as long as nothing is found."""
        yield self._detect(self.image, _SIZE)
        if max(self.image.shape[:2]) >= _SIZE:
            yield self._detect(self.image, _CLOSE)
        for size in _SMALL_SIZES:
            yield self._detect(self.image, size)
        for turns in _TURNS:
            yield self._detect_turned(self.image, turns, _SIZE)

    def look_closer(self, seen: list[Detection]) -> list[FoundFace]:
        """What only shows at a larger size, where the picture has it and small faces suggest it."""
        longest = max(self.image.shape[:2])
        smallest = min(side(detection.box) for detection in seen)
        if longest <= _SIZE or smallest * _SIZE / longest >= _CLOSE_BELOW:
            return []
        return self.gate(self._detect(self.image, _CLOSE))[0]

    def turn_around(self, box: Floats) -> list[FoundFace]:
        """A detection without a well-fitting mesh, looked at sideways and upside down."""
        if side(box) < MEASURABLE:
            return []
        part, origin = _surroundings(self.image, box)
        turned = [d for turns in _TURNS for d in self._detect_turned(part, turns, _SMALL_SIZES[0])]
        moved = [_moved(d, origin) for d in turned]
        return self.gate([d for d in moved if _overlap(d.box, box)])[0]

    def turn_with(self, faces: list[FoundFace]) -> list[FoundFace]:
        """The picture once more, turned as its turned faces are: a group lying on its side is only found in part."""
        turns = {round(pose_of(face.mesh).roll / 90) % 4 for face in faces} - {0}
        return [f for t in sorted(turns) for f in self.gate(self._detect_turned(self.image, t, _SIZE))[0]]

    def gate(self, detections: list[Detection]) -> tuple[list[FoundFace], list[Detection]]:
        """Faces with a mesh that fits, and the detections without."""
        meshes = self.landmarker.locate(self.image, [d.points for d in detections])
        faces: list[FoundFace] = []
        rejected: list[Detection] = []
        for detection, landmarks in zip(detections, meshes, strict=True):
            face = fitting(detection, landmarks)
            fits = face is not None and side(detection.box) >= MEASURABLE
            faces += [face] if face is not None and fits else []
            rejected += [] if fits else [detection]
        return faces, rejected

    def measure(self, detections: list[Detection]) -> list[FoundFace]:
        small = [d for d in detections if side(d.box) < MEASURABLE]
        meshes = self.landmarker.locate(self.image, [d.points for d in small])
        return [_posed(d, m.mesh, pose_of(m.mesh)) for d, m in zip(small, meshes, strict=True)]

    def _detect(self, image: Image, size: int) -> list[Detection]:
        found = self.detector.detect(image, size=size, threshold=self.min_score)
        return [d for d in found if d.score >= self.min_score]

    def _detect_turned(self, image: Image, turns: int, size: int) -> list[Detection]:
        height, width = image.shape[:2]
        turned = np.ascontiguousarray(np.rot90(image, turns))
        return [_turned_back(d, turns, width, height) for d in self._detect(turned, size)]


def side(box: Floats) -> float:
    """Shorter side of a box [4] in pixels: the size of a face everywhere in the product."""
    return float(min(box[2] - box[0], box[3] - box[1]))


def fitting(detection: Detection, landmarks: Landmarks) -> FoundFace | None:
    """The face, if the mesh is sure of one and looks like one."""
    if landmarks.score <= _FLAG:
        return None
    pose = pose_of(landmarks.mesh)
    limit = _MISFIT_TURNED if abs(pose.roll) > _UPSIDE_DOWN else _MISFIT
    return _posed(detection, landmarks.mesh, pose) if pose.misfit < limit else None


def _posed(detection: Detection, mesh: Floats, pose: Pose) -> FoundFace:
    return FoundFace(box=detection.box, score=detection.score, mesh=mesh, yaw=pose.yaw, misfit=pose.misfit)


def _turned_back(detection: Detection, turns: int, width: int, height: int) -> Detection:
    """From a picture turned by quarter turns against the clock to the picture of that width and height."""
    corners = _points_back(detection.box.reshape(2, 2), turns, width, height)
    box = np.concatenate([corners.min(0), corners.max(0)]).astype(np.float32)
    return replace(detection, box=box, points=_points_back(detection.points, turns, width, height))


def _points_back(points: Floats, turns: int, width: int, height: int) -> Floats:
    x, y = points[:, 0], points[:, 1]
    back = {1: (width - y, x), 2: (width - x, height - y), 3: (y, height - x)}[turns]
    return np.stack(back, 1).astype(np.float32)


def _surroundings(image: Image, box: Floats) -> tuple[Image, Floats]:
    """The part of the picture around a box, twice its size, and its origin [2]."""
    height, width = image.shape[:2]
    reach = float(max(box[2] - box[0], box[3] - box[1]))
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    x0, y0 = int(max(0, x - reach)), int(max(0, y - reach))
    x1, y1 = int(min(width, x + reach)), int(min(height, y + reach))
    return image[y0:y1, x0:x1], np.array([x0, y0], np.float32)


def _moved(detection: Detection, origin: Floats) -> Detection:
    return replace(detection, box=detection.box + np.tile(origin, 2), points=detection.points + origin)


def _overlap(a: Floats, b: Floats) -> bool:
    return bool(min(a[2], b[2]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1]))


def _distinct(faces: list[FoundFace]) -> list[FoundFace]:
    """The best-fitting of those that lie on one another."""
    kept: list[FoundFace] = []
    for face in sorted(faces, key=lambda f: (f.misfit, *_centre(f))):
        x, y = _centre(face)
        size = side(face.box)
        if all(np.hypot(x - u, y - v) > _SAME * max(size, side(k.box)) for k in kept for u, v in [_centre(k)]):
            kept.append(face)
    return kept


def _in_order(faces: list[FoundFace]) -> list[FoundFace]:
    return sorted(faces, key=_centre)


def _centre(face: FoundFace) -> tuple[float, float]:
    box = face.box
    return float(box[0] + box[2]) / 2, float(box[1] + box[3]) / 2
