"""Where a new scene begins, told from the brightness of frames.

The measure of FFmpeg's filter `scdet`: how much pixels change on average, in per cent of white, unless they changed as
much from the frame before: then it is motion. It is estimated from at most 2304 pixels of each frame. Knows numpy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared.video.frame import Samples

THRESHOLD = 10.0
"""Per cent; FFmpeg's own, which names 8 to 14 as the useful range."""
_ROWS, _COLUMNS = 36, 64


class Cuts:
    """One for each video, asked for every frame in the order of time."""

    def __init__(self, depth: int) -> None:
        self._white = float((1 << depth) - 1)
        self._before: NDArray[np.float32] | None = None
        self._changed = 0.0

    def __call__(self, luma: Samples) -> bool:
        """`luma`: the first plane. False for the first frame of all."""
        rows, columns = max(1, luma.shape[0] // _ROWS), max(1, luma.shape[1] // _COLUMNS)
        now = luma[rows // 2 :: rows, columns // 2 :: columns].astype(np.float32)
        before, self._before = self._before, now
        if before is None:
            return False
        changed = 100 * float(np.abs(now - before).mean()) / self._white
        score, self._changed = min(changed, abs(changed - self._changed)), changed
        return score >= THRESHOLD
