"""One loaded model: what it takes and gives, and runs of it with our errors.

Knows the error tree and an onnxruntime session handed to it by `runtime`, which alone imports onnxruntime.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.errors import GpuMemoryError, ModelError, ModelIncompatibleError, ModelIncompleteError, ModelInvalidError
from shared.vision.binding import Array, Bindings, OrtSession, OrtValues

_TOO_NEW = (
    re.compile(r"IR version: (?P<model>\d+), max supported IR version: (?P<runtime>\d+)"),
    re.compile(r"Opset (?P<model>\d+) is under development.*till opset (?P<runtime>\d+)", re.DOTALL),
)
_PART_MISSING = re.compile(r'External data path does not exist: "(?P<path>[^"]+)"')
_NO_MEMORY = re.compile(
    r"out of memory|failed to allocate memory|_ALLOC_FAILED|bad.?alloc|available memory of \d+ is smaller",
    re.IGNORECASE,
)
"""CUDA, onnxruntime's arena, cuDNN and cuBLAS, the C++ allocator, an arena with a limit."""
_FLOATS: dict[str, type[np.floating[Any]]] = {
    "tensor(float16)": np.float16,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
}


@dataclass(frozen=True)
class Port:
    """An input or output as the model file declares it."""

    name: str
    shape: tuple[int | str | None, ...]
    """A number is fixed, a name or None is free."""
    dtype: type[np.floating[Any]] | None
    """None for anything but float16, float32 and float64."""


class Session:
    """One loaded model. Threads may share it; a forked child may not."""

    def __init__(self, session: OrtSession, path: Path, errors: tuple[type[Exception], ...], values: OrtValues) -> None:
        """`errors`: what onnxruntime raises; `values`: its class of device memory."""
        self._session = session
        self._path = path
        self._errors: tuple[type[Exception], ...] = (*errors, ValueError)  # ValueError: an input is missing
        self._pid = os.getpid()
        self.provider = str(session.get_providers()[0]).removesuffix("ExecutionProvider").lower()
        """`cpu`, `cuda` or `tensorrt`: what the session really got."""
        self.inputs = {port.name: port for port in map(_port, session.get_inputs())}
        self.outputs = {port.name: port for port in map(_port, session.get_outputs())}
        self._bindings = None if self.provider == "cpu" else Bindings(session, values, "cuda")

    @property
    def batch(self) -> int | None:
        """Rows that every run must have, or None where their number is free."""
        fixed = [size for port in self.inputs.values() for size in port.shape[:1] if isinstance(size, int)]
        return min(fixed, default=None)

    def run(self, feeds: Mapping[str, Array], outputs: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
        """The named outputs (all of them by default), in that order, half precision given as float32.

        Floats are cast to what the model declares. Raises ModelInvalidError when the model does not take these
        inputs, GpuMemoryError, and ModelError after a fork.
        """
        if os.getpid() != self._pid:
            raise ModelError("The session was made before a fork and cannot run in the child")
        names = list(self.outputs) if outputs is None else list(outputs)
        cast = {name: self._declared(name, values) for name, values in feeds.items()}
        try:
            found = self._session.run(names, cast) if self._bindings is None else self._bindings.run(cast, names)
        except self._errors as error:
            raise self._run_error(error) from error
        return [_single(values) for values in found]

    def _declared(self, name: str, values: Array) -> Array:
        port = self.inputs.get(name)
        dtype = port.dtype if port is not None and np.issubdtype(values.dtype, np.floating) else None
        return np.ascontiguousarray(values, dtype)

    def _run_error(self, error: Exception) -> ModelError:
        if _NO_MEMORY.search(str(error)):
            if self._bindings is not None:
                self._bindings.clear()
            return GpuMemoryError(f"No memory to run {self._path.name} on {self.provider}")
        return ModelInvalidError(f"{self._path.name} does not run as described: {_first_line(str(error))}")


def load_error(path: Path, text: str) -> ModelError:
    """What onnxruntime's message about a file means."""
    for pattern in _TOO_NEW:
        if found := pattern.search(text):
            numbers = {"model": int(found["model"]), "runtime": int(found["runtime"])}
            detail = f"{path.name} needs version {found['model']}, this runtime knows up to {found['runtime']}"
            return ModelIncompatibleError(detail, context={**numbers})
    if found := _PART_MISSING.search(text):
        name = Path(found["path"]).name
        return ModelIncompleteError(f"{path.name} needs the file {name} beside it", context={"file": name})
    if _NO_MEMORY.search(text):
        return GpuMemoryError(f"No memory to load {path.name}")
    return ModelInvalidError(f"{path.name} is not a valid ONNX model: {_first_line(text)}")


def _port(declared: Any) -> Port:
    return Port(declared.name, tuple(declared.shape), _FLOATS.get(declared.type))


def _single(values: Array) -> NDArray[np.float32]:
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200]
