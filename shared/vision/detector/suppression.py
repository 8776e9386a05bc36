"""Of boxes that lie on one another the surest: non-maximum suppression, the same for every detector.

Pure numpy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared.vision.protocols import Floats


def strongest(boxes: Floats, scores: Floats, overlap: float) -> NDArray[np.intp]:
    """Indices of the boxes that stay, surest first; of equal scores the first one.

    boxes: [n, 4], x0, y0, x1, y1. overlap: largest intersection over union of two that stay, 0..1.
    One pass for every box that stays, each over all that are left: pictures have few faces and many candidates.
    """
    low, high = boxes[:, :2], boxes[:, 2:]
    areas = np.maximum(high - low, 0).prod(axis=1)
    left = np.argsort(-scores, kind="stable")
    kept: list[np.intp] = []
    while left.size:
        best, left = left[0], left[1:]
        kept.append(best)
        common = np.minimum(high[best], high[left]) - np.maximum(low[best], low[left])
        shared_area = np.maximum(common, 0).prod(axis=1)
        union = areas[best] + areas[left] - shared_area
        left = left[shared_area <= overlap * union]
    return np.array(kept, np.intp)
