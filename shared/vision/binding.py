"""Memory on the device that stays bound to a session's inputs and outputs from one run to the next.

A run then costs one copy there and one back, with no allocation. Knows an onnxruntime session and its class of device
memory, both handed in.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
OrtSession: TypeAlias = Any
OrtValues: TypeAlias = Any
"""onnxruntime's InferenceSession and its class OrtValue, untyped there; `runtime` alone imports onnxruntime."""
Key: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, tuple[int, ...]], ...]]

_KEPT = 4
"""Sets of buffers that wait for the next run; each holds one batch of inputs and outputs."""


class Bindings:
    """Buffers for every combination of shapes that is in use. Threads may share it: each run has a set to itself."""

    def __init__(self, session: OrtSession, values: OrtValues, device: str) -> None:
        """`device`: "cuda" or "cpu", as onnxruntime calls it."""
        self._session = session
        self._values = values
        self._device = device
        self._waiting: deque[tuple[Key, _Bound]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def run(self, feeds: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Copies of the named outputs. Raises what onnxruntime raises."""
        key = (tuple(outputs), tuple((name, values.shape) for name, values in feeds.items()))
        bound = self._take(key) or _Bound(self._session, self._values, self._device)
        found = bound.run(feeds, outputs)
        with self._lock:
            self._waiting.append((key, bound))
        return found

    def clear(self) -> None:
        """Give the memory of all waiting buffers back to the session's arena."""
        with self._lock:
            self._waiting.clear()

    def _take(self, key: Key) -> _Bound | None:
        with self._lock:
            for index, (waiting, bound) in enumerate(self._waiting):
                if waiting == key:
                    del self._waiting[index]
                    return bound
        return None


class _Bound:
    """One set of buffers for inputs of always the same shapes."""

    def __init__(self, session: OrtSession, values: OrtValues, device: str) -> None:
        self._session = session
        self._values = values
        self._device = device
        self._binding = session.io_binding()
        self._inputs: dict[str, Any] = {}
        declared = {output.name: output.shape for output in session.get_outputs()}
        self._sized = {name: _follows_input(shape, session) for name, shape in declared.items()}

    def run(self, feeds: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        first = not self._inputs
        for name, values in feeds.items():
            self._write(name, values)
        for name in outputs:
            # onnxruntime keeps what the first run allocated; one whose shape may change must be asked for anew
            if first or not self._sized.get(name):
                self._binding.bind_output(name, self._device)
        self._session.run_with_iobinding(self._binding)
        return [np.array(values) for values in self._binding.copy_outputs_to_cpu()]

    def _write(self, name: str, values: Array) -> None:
        if name in self._inputs:
            self._inputs[name].update_inplace(values)
            return
        # a buffer on the CPU is the array itself: it must be ours
        self._inputs[name] = self._values.ortvalue_from_numpy(values.copy(), self._device, 0)
        self._binding.bind_ortvalue_input(name, self._inputs[name])


def _follows_input(shape: Sequence[int | str | None], session: OrtSession) -> bool:
    """Whether the same input shapes always give this output shape."""
    free = {size for given in session.get_inputs() for size in given.shape if isinstance(size, str)}
    return all(isinstance(size, int) or size in free for size in shape)
