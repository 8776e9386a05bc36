"""What the tests of the picture stages ask of pictures: their pixels, and where two differ."""

from __future__ import annotations

import cv2
import numpy as np

from shared.events.payloads import Result


def bgr(data: bytes) -> np.ndarray:
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    return picture


def changed(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Boolean [h, w]: where the pictures differ."""
    return np.asarray((before != after).any(axis=2))


def outside(result: Result, picture: np.ndarray, around: float = 0.0) -> np.ndarray:
    """Boolean [h, w]: what is well away from every swapped face; `around`: by this part of its longer side more."""
    rest = np.ones(picture.shape[:2], bool)
    for face in result.faces:
        more = around * max(face.width, face.height)
        y, x = max(int(face.y - 20 - more), 0), max(int(face.x - 30 - more), 0)
        rest[y : int(face.y + face.height + 30 + more), x : int(face.x + face.width + 30 + more)] = False
    return rest
