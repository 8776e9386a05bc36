"""Many meshes in half the room of float32: whole steps from the middle of each.

Those of a clip's faces are all of it that has to be kept at once, so they are kept so from the moment they were seen.
Knows numpy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shared.vision.protocols import Floats

POINTS = 468
_STEPS = 32766
"""The farthest coordinate is so many steps from the middle: a 400 px face is off by 0.004 px at most."""
_BLOCK = 64
"""Meshes that get their room together: so much that it goes back to the system when they are gone."""


class Meshes:
    """[m, 468, 3], with float32 for whoever looks at one of them or some."""

    def __init__(self, packed: NDArray[np.int16], middles: Floats, steps: Floats) -> None:
        """[m, 468, 3], [m, 3], [m]"""
        self.packed, self.middles, self.steps = packed, middles, steps

    @classmethod
    def room(cls, count: int) -> Meshes:
        """For so many, still without values."""
        shape = (count, POINTS, 3)
        return cls(np.empty(shape, np.int16), np.empty((count, 3), np.float32), np.empty(count, np.float32))

    @classmethod
    def of(cls, values: Floats) -> Meshes:
        made = cls.room(len(values))
        made.put(np.arange(len(values)), values)
        return made

    def put(self, at: NDArray[np.intp], values: Floats) -> None:
        """[k, 468, 3] in places of their own."""
        for start in range(0, len(values), _BLOCK):
            self._put(at[start : start + _BLOCK], values[start : start + _BLOCK])

    def _put(self, at: NDArray[np.intp], values: Floats) -> None:
        low, high = values.min(1, initial=np.inf), values.max(1, initial=-np.inf)
        middles = ((low + high) / 2).astype(np.float32)
        steps = np.maximum((high - low).max(1, initial=0) / 2 / _STEPS, 1e-9).astype(np.float32)
        counted = np.rint((values - middles[:, None]) / steps[:, None, None])
        # far from the corner the middle itself is rounded by more than a small face's step
        self.packed[at] = counted.clip(-_STEPS - 1, _STEPS + 1).astype(np.int16)
        self.middles[at], self.steps[at] = middles, steps

    def __len__(self) -> int:
        return len(self.packed)

    @overload
    def __getitem__(self, at: int) -> Floats: ...

    @overload
    def __getitem__(self, at: slice | NDArray[Any]) -> Floats: ...

    def __getitem__(self, at: int | slice | NDArray[Any]) -> Floats:
        steps, middles = self.steps[at], self.middles[at]
        found: Floats = self.packed[at] * steps[..., None, None] + middles[..., None, :]
        return found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)


class Seen:
    """A face's mesh in each frame in which it was followed; None where it was missed."""

    def __init__(self) -> None:
        self._blocks: list[Meshes] = []
        self._count = 0
        self._rows = array("l")
        """Number among the meshes, by frame; -1 for none."""

    def append(self, mesh: Floats | None) -> None:
        self._rows.append(self._kept(mesh))

    def prepend(self, meshes: Sequence[Floats | None]) -> None:
        self._rows = array("l", [self._kept(mesh) for mesh in meshes]) + self._rows

    def keep(self, frames: int) -> None:
        """Forget all but the first frames."""
        del self._rows[frames:]

    def clear(self) -> None:
        """Give the room back."""
        self._blocks.clear()
        self._rows = array("l")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, frame: int) -> Floats | None:
        row = self._rows[frame]
        return None if row < 0 else self._blocks[row // _BLOCK][row % _BLOCK]

    def __iter__(self) -> Iterator[Floats | None]:
        return (self[frame] for frame in range(len(self)))

    @property
    def seen(self) -> NDArray[np.bool_]:
        """[frames]: where it was."""
        return np.array(self._rows, np.int64) >= 0

    def bridged(self, low: int, high: int) -> Floats:
        """[high - low, 468, 3]: missing ones on the straight line between their neighbours. Both ends were seen."""
        result = np.empty((high - low, POINTS, 3), np.float32)
        known = np.flatnonzero(self.seen)
        for frame in range(low, high):
            after = int(np.searchsorted(known, frame))
            right = int(known[after])
            found = self[right]
            if right != frame:
                left = int(known[after - 1])
                before, share = self[left], np.float32((frame - left) / (right - left))
                assert before is not None and found is not None  # noqa: PT018 - both are known
                found = before + share * (found - before)
            result[frame - low] = found
        return result

    def _kept(self, mesh: Floats | None) -> int:
        if mesh is None:
            return -1
        if self._count % _BLOCK == 0:
            self._blocks.append(Meshes.room(_BLOCK))
        row, self._count = self._count, self._count + 1
        self._blocks[-1].put(np.array([row % _BLOCK]), mesh[None])
        return row
