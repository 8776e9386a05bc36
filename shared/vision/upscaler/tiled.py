"""Upscalers that see a picture in tiles of one size: Real-ESRGAN, SPAN and their kin.

Model files: `model`. Parameters: `factor`, `tile`, `pad`, `overlap` (pixels of the small picture). Input `input`
[n, 3, tile, tile] RGB in 0..1; output the same, `factor` times as high and wide. Knows the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from shared.rejections import ImageTooLargeError
from shared.vision.protocols import Floats, Image, ModelAssets
from shared.vision.runtime import Runtime
from shared.vision.upscaler.tiles import Grid

LARGEST = (3840, 2160)
"""4K: long and short side of the largest result, in pixels."""
MEMORY = 1 << 30
"""Bytes that the tiles of one batch may take in a network; where there is less, the runtime halves the batch."""
_BYTES_PER_PIXEL = 2 * 64 * 4
"""Of the enlarged tile: two maps of 64 channels in float32, as these networks hold them at their last layers."""


class Tiled:
    """Upscaler."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        numbers = assets.parameters
        self.factor = int(numbers["factor"])
        self._tile, self._pad, self._overlap = (int(numbers[name]) for name in ("tile", "pad", "overlap"))
        self._batches = runtime.batches(runtime.session(assets.files["model"]))
        self._at_once = max(1, MEMORY // (_BYTES_PER_PIXEL * (self._tile * self.factor) ** 2))

    def warm(self) -> None:
        self.upscale(np.zeros((16, 16, 3), np.uint8))

    def upscale(self, frame: Image) -> Image:
        """uint8 [h, w, 3] -> [h * factor, w * factor, 3].

        Raises ImageTooLargeError when the result would be larger than 4K; it is never made smaller instead.
        """
        height, width = frame.shape[:2]
        check(width, height, self.factor)
        grid = Grid(height, width, self._tile, self._pad, self._overlap)
        return grid.join(self._enlarged(grid.cut(frame)), self.factor)

    def _enlarged(self, tiles: Iterator[Image]) -> Iterator[Floats]:
        while batch := list(islice(tiles, self._at_once)):
            blob = np.stack([tile[:, :, ::-1].transpose(2, 0, 1) for tile in batch]) * np.float32(1 / 255)
            yield from self._batches.run({"input": blob})[0]


def check(width: int, height: int, factor: int) -> None:
    """Raises ImageTooLargeError, naming the cap, when `factor` would take a picture beyond 4K, either way up."""
    long, short = max(width, height) * factor, min(width, height) * factor
    if long > LARGEST[0] or short > LARGEST[1]:
        size = f"{width * factor} x {height * factor}"
        raise ImageTooLargeError(
            f"The picture enlarged {factor} times would have {size} pixels; the largest result is"
            f" {LARGEST[0]} x {LARGEST[1]} (4K), either way up.",
            context={"width": width * factor, "height": height * factor, "factor": factor,
                     "max_long_side": LARGEST[0], "max_short_side": LARGEST[1]},
        )  # fmt: skip
