"""Many rows through one model: as many at a time as memory allows.

Knows the error tree and anything that runs like a session.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared.errors import GpuMemoryError

Array: TypeAlias = NDArray[Any]

log = logging.getLogger(__name__)


class Runs(Protocol):
    @property
    def batch(self) -> int | None:
        """Rows that every run must have, or None where their number is free."""
        ...

    def run(self, feeds: Mapping[str, Array], outputs: Sequence[str] | None = None) -> list[NDArray[np.float32]]: ...


class Batches:
    """Faces of a frame and tiles of a face share runs. Threads may share it."""

    def __init__(self, session: Runs, elements: int) -> None:
        """`elements`: most numbers that one run takes in."""
        self._session = session
        self._elements = elements
        self._most: int | None = None

    def run(self, feeds: Mapping[str, Array], outputs: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
        """Outputs for all rows; every feed has the same number of rows, at least one, in its first axis.

        Out of memory halves the batch, for this run and all that follow. Raises GpuMemoryError when one row is too
        much, and whatever the session raises.
        """
        rows = len(next(iter(feeds.values())))
        most = self._rows_at_once(sum(values.size // rows for values in feeds.values()))
        parts: list[list[NDArray[np.float32]]] = []
        start = 0
        while start < rows:
            stop = min(rows, start + most)
            try:
                part = {name: values[start:stop] for name, values in feeds.items()}
                parts.append(self._session.run(part, outputs))
            except GpuMemoryError:
                most = (stop - start) // 2
                if not most or self._session.batch is not None:
                    raise
                self._keep_below(most)
            else:
                start = stop
        return parts[0] if len(parts) == 1 else [np.concatenate(values) for values in zip(*parts, strict=True)]

    def _rows_at_once(self, elements: int) -> int:
        """`elements`: numbers in one row."""
        fixed = self._session.batch
        most = fixed if fixed is not None else max(1, self._elements // elements)
        return most if self._most is None else min(most, self._most)

    def _keep_below(self, rows: int) -> None:
        self._most = rows
        log.warning("out of memory: batches of %d rows from now on", rows, extra={"rows": rows})
