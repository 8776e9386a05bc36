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

from shared.errors import (
    GpuFaultError,
    GpuMemoryError,
    ModelError,
    ModelIncompatibleError,
    ModelIncompleteError,
    ModelInvalidError,
)
from shared.vision import device_time
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
_FAULT = re.compile(
    r"CUDA (?:failure|error)|CU(?:DNN|BLAS)_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)"
    r"|illegal (?:memory access|address|instruction)|misaligned address|unspecified launch failure|device-side assert"
    r"|uncorrectable ECC|device (?:was )?(?:lost|reset|removed|hung)",
    re.IGNORECASE,
)
"""CUDA's sticky errors and what cuDNN and cuBLAS make of them. What is no fault and says CUDA is memory, seen first."""
_FAULTS = ("DeviceReset", "EPFail")
"""Classes of onnxruntime that say the same, whatever their text."""
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
        # ValueError: an input is missing; the others are how C++ exceptions arrive that onnxruntime has no class for
        self._errors: tuple[type[Exception], ...] = (*errors, ValueError, RuntimeError, MemoryError)
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
        inputs, GpuMemoryError, GpuFaultError, and ModelError after a fork.
        """
        if os.getpid() != self._pid:
            raise ModelError("The session was made before a fork and cannot run in the child")
        names = list(self.outputs) if outputs is None else list(outputs)
        cast = {name: self._declared(name, values) for name, values in feeds.items()}
        try:
            with device_time.running(self.provider):
                found = self._session.run(names, cast) if self._bindings is None else self._bindings.run(cast, names)
        except self._errors as error:
            raise self._run_error(error) from error
        return [_single(values) for values in found]

    def _declared(self, name: str, values: Array) -> Array:
        port = self.inputs.get(name)
        dtype = port.dtype if port is not None and np.issubdtype(values.dtype, np.floating) else None
        return np.ascontiguousarray(values, dtype)

    def _run_error(self, error: Exception) -> ModelError:
        device = device_error(error, f"run {self._path.name} on {self.provider}")
        if device is not None and self._bindings is not None:
            self._bindings.clear()
        return device or ModelInvalidError(f"{self._path.name} does not run as described: {_first_line(str(error))}")


def device_error(error: Exception, what: str) -> ModelError | None:
    """What onnxruntime's error says of the device rather than of the model; None for the latter."""
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        return GpuMemoryError(f"No memory to {what}")
    if type(error).__name__ in _FAULTS or _FAULT.search(str(error)):
        return GpuFaultError(f"The device failed: it could not {what}: {_first_line(str(error))}")
    return None


def load_error(path: Path, error: Exception) -> ModelError:
    """What onnxruntime's error about a file means."""
    text = str(error)
    for pattern in _TOO_NEW:
        if found := pattern.search(text):
            numbers = {"model": int(found["model"]), "runtime": int(found["runtime"])}
            detail = f"{path.name} needs version {found['model']}, this runtime knows up to {found['runtime']}"
            return ModelIncompatibleError(detail, context={**numbers})
    if found := _PART_MISSING.search(text):
        name = Path(found["path"]).name
        return ModelIncompleteError(f"{path.name} needs the file {name} beside it", context={"file": name})
    return device_error(error, f"load {path.name}") or ModelInvalidError(
        f"{path.name} is not a valid ONNX model: {_first_line(text)}"
    )


def _port(declared: Any) -> Port:
    return Port(declared.name, tuple(declared.shape), _FLOATS.get(declared.type))


def _single(values: Array) -> NDArray[np.float32]:
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0][:200]
