"""A picture as overlapping tiles, and enlarged tiles as one picture again: no seam, and never the whole in floats.

Neighbours share 2 x `overlap` pixels. The outer quarters of what they share are thrown away, since there a network
feels the border of its tile; between them one tile fades into the next. Pure array work; knows no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from shared.vision.protocols import Floats, Image


@dataclass(frozen=True)
class Grid:
    """Where the tiles of one picture lie."""

    height: int
    width: int
    """Of the picture, in pixels."""
    tile: int
    pad: int
    """Mirrored pixels round the picture, so that its own edge is no tile's border."""
    overlap: int

    @property
    def step(self) -> int:
        return self.tile - 2 * self.overlap

    @property
    def rows(self) -> int:
        return self._count(self.height)

    @property
    def columns(self) -> int:
        return self._count(self.width)

    def _count(self, side: int) -> int:
        return 1 + max(0, -(-(side + 2 * self.pad - self.tile) // self.step))

    def cut(self, frame: Image) -> Iterator[Image]:
        """Views [tile, tile, 3] from left to right, then from top to bottom."""
        bottom = (self.rows - 1) * self.step + self.tile - self.pad - self.height
        right = (self.columns - 1) * self.step + self.tile - self.pad - self.width
        wide = cv2.copyMakeBorder(frame, self.pad, bottom, self.pad, right, cv2.BORDER_REFLECT)
        for y in range(0, self.rows * self.step, self.step):
            for x in range(0, self.columns * self.step, self.step):
                yield wide[y : y + self.tile, x : x + self.tile]  # type: ignore[misc]

    def join(self, tiles: Iterable[Floats], factor: int) -> Image:
        """The enlarged picture from enlarged tiles float32 [3, tile * factor, tile * factor], RGB in 0..1, in order."""
        result = np.empty((self.height * factor, self.width * factor, 3), np.uint8)
        ramp = _ramp(self.overlap * factor)[:, None]
        step, left, y = self.step * factor, self.pad * factor, -self.pad * factor
        above: Floats | None = None
        for row, band in enumerate(self._bands(iter(tiles), factor)):
            if above is not None:
                shared = band[:, : len(ramp)]
                shared[:] = _faded(above, shared, ramp)
            above = band[:, step:].copy()
            done = band if row == self.rows - 1 else band[:, :step]
            first, last = max(y, 0), min(y + done.shape[1], len(result))
            result[first:last] = pixels(done[:, first - y : last - y, left : left + result.shape[1]])
            y += step
        return result

    def _bands(self, tiles: Iterator[Floats], factor: int) -> Iterator[Floats]:
        """Each row of tiles as one [3, tile * factor, n]; the next one is written into the same memory."""
        step, side = self.step * factor, self.tile * factor
        ramp = _ramp(self.overlap * factor)
        band = np.empty((3, side, (self.columns - 1) * step + side), np.float32)
        for _ in range(self.rows):
            for x in range(0, self.columns * step, step):
                tile, taken = next(tiles), len(ramp) if x else 0
                shared = band[:, :, x : x + taken]
                shared[:] = _faded(shared, tile[:, :, :taken], ramp[:taken])
                band[:, :, x + taken : x + side] = tile[:, :, taken:]
            yield band


def pixels(planes: Floats) -> Image:
    """float32 [3, h, w], RGB in 0..1 -> uint8 [h, w, 3], BGR, clipped and rounded."""
    levels = np.clip(planes, 0, 1)
    levels *= 255
    return np.rint(levels, out=levels).astype(np.uint8)[::-1].transpose(1, 2, 0)


def _ramp(overlap: int) -> Floats:
    """[2 * overlap] from 0 to 1; it rises in the middle half only."""
    rising = (np.arange(overlap, dtype=np.float32) + np.float32(0.5)) / max(overlap, 1)
    before = overlap // 2
    return np.concatenate([np.zeros(before, np.float32), rising, np.ones(overlap - before, np.float32)])


def _faded(old: Floats, new: Floats, ramp: Floats) -> Floats:
    """From old to new along the ramp; where both agree, exactly what they agree on."""
    return (old + ramp * (new - old)).astype(np.float32, copy=False)
