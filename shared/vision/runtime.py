"""ONNX sessions with everything that matters set explicitly; the only importer of onnxruntime.

onnxruntime is imported when the first session is made, never at import and never before a fork: its threads
do not survive one. Knows the error tree and nothing of any model.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shared.errors import (
    GpuUnavailableError,
    ModelError,
    ModelIncompatibleError,
    ModelIncompleteError,
    ModelInvalidError,
    ModelNotFoundError,
)
from shared.vision.threads import cpu_limit

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_TOO_NEW = (
    re.compile(r"IR version: (?P<model>\d+), max supported IR version: (?P<runtime>\d+)"),
    re.compile(r"Opset (?P<model>\d+) is under development.*till opset (?P<runtime>\d+)", re.DOTALL),
)
_PART_MISSING = re.compile(r'External data path does not exist: "(?P<path>[^"]+)"')
_ERROR_NAMES = ("InvalidProtobuf", "InvalidGraph", "InvalidArgument", "Fail", "NotImplemented", "RuntimeException")
_ERROR_LEVEL = 3


class Device(StrEnum):
    """Where sessions run."""

    CPU = "cpu"
    GPU = "gpu"
    """CUDA, or GpuUnavailableError."""
    GPU_PREFERRED = "gpu-preferred"
    """CUDA where there is one, else the CPU; `Session.provider` says which it became."""


_PROVIDERS = {
    Device.CPU: ("CPUExecutionProvider",),
    Device.GPU: ("CUDAExecutionProvider", "CPUExecutionProvider"),
    Device.GPU_PREFERRED: ("CUDAExecutionProvider", "CPUExecutionProvider"),
}


class Session:
    """One loaded model. Threads may share it; a forked child may not."""

    def __init__(self, session: InferenceSession, path: Path) -> None:
        self._session = session
        self._path = path
        self._pid = os.getpid()
        self.provider = str(session.get_providers()[0]).removesuffix("ExecutionProvider").lower()
        """`cpu` or `cuda`: what the session really got."""

    def run(self, feeds: Mapping[str, NDArray[Any]], outputs: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
        """The named outputs (all of them by default), in that order.

        Raises ModelInvalidError when the model does not take these inputs, ModelError after a fork.
        """
        if os.getpid() != self._pid:
            raise ModelError("The session was made before a fork and cannot run in the child")
        try:
            return list(self._session.run(outputs, dict(feeds)))
        except _run_errors() as error:
            raise ModelInvalidError(f"{self._path.name} does not run as described: {_first_line(error)}") from error


class Runtime:
    """Session factory of one process."""

    def __init__(self, device: Device | str = Device.CPU, *, threads: int | None = None) -> None:
        """`threads`: most threads of one session, and OpenCV's number; by default what the cgroup allows."""
        self.device = Device(device)
        self.threads = max(1, threads if threads is not None else cpu_limit())
        self._lock = threading.Lock()
        self._opencv_follows = False

    def session(self, path: Path, *, threads: int | None = None) -> Session:
        """Load one .onnx file.

        `threads`: fewer threads than the runtime's own number, for small models that lose by sharing.
        Raises GpuUnavailableError, ModelNotFoundError, ModelInvalidError, ModelIncompatibleError (context: `model`,
        `runtime` version numbers), ModelIncompleteError (context: `file`).
        """
        if not path.is_file():
            raise ModelNotFoundError(f"No model file {path.name}")
        self._limit_opencv()
        ort = _onnxruntime()
        providers = self._providers(ort)
        options = session_options(ort, min(self.threads, threads or self.threads))
        try:
            session = ort.InferenceSession(str(path), options, providers=providers)
        except _ort_errors() as error:
            raise _load_error(path, str(error)) from error
        self._check_provider(session.get_providers()[0])
        return Session(session, path)

    def _providers(self, ort: ModuleType) -> list[str]:
        available = ort.get_available_providers()
        wanted = _PROVIDERS[self.device]
        self._check_provider(wanted[0] if wanted[0] in available else wanted[-1])
        return [name for name in wanted if name in available]

    def _check_provider(self, got: str) -> None:
        # get_available_providers() lists CUDA also where its libraries do not load; only the session tells.
        wanted = _PROVIDERS[self.device][0]
        if got != wanted and self.device is not Device.GPU_PREFERRED:
            raise GpuUnavailableError(f"Asked for {wanted}, got {got}", context={"wanted": wanted, "got": got})

    def _limit_opencv(self) -> None:
        with self._lock:
            if not self._opencv_follows:
                import cv2

                cv2.setNumThreads(self.threads)
                self._opencv_follows = True


def session_options(ort: ModuleType, threads: int) -> Any:
    """Session options with explicit threads that sleep when idle.

    Spinning threads made CenterFace at 640 px take 236 ms instead of 114 on two shared cores (engine.md section 1).
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERROR_LEVEL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return options


def _onnxruntime() -> ModuleType:
    import onnxruntime

    return onnxruntime  # type: ignore[no-any-return, unused-ignore]


def _ort_errors() -> tuple[type[Exception], ...]:
    # onnxruntime's errors share no base class of their own.
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return tuple(getattr(state, name) for name in _ERROR_NAMES)


def _run_errors() -> tuple[type[Exception], ...]:
    return (*_ort_errors(), ValueError)  # ValueError: an input is missing


def _load_error(path: Path, text: str) -> ModelError:
    for pattern in _TOO_NEW:
        if found := pattern.search(text):
            numbers = {"model": int(found["model"]), "runtime": int(found["runtime"])}
            detail = f"{path.name} needs version {found['model']}, this runtime knows up to {found['runtime']}"
            return ModelIncompatibleError(detail, context={**numbers})
    if found := _PART_MISSING.search(text):
        name = Path(found["path"]).name
        return ModelIncompleteError(f"{path.name} needs the file {name} beside it", context={"file": name})
    return ModelInvalidError(f"{path.name} is not a valid ONNX model: {text.strip().splitlines()[0][:200]}")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200]
