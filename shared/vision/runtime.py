"""ONNX sessions with everything that matters set explicitly; the only importer of onnxruntime.

onnxruntime is imported when the first session is made, never at import and never before a fork: its threads
do not survive one. Knows the error tree and nothing of any model.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

from shared.errors import ConfigError, GpuUnavailableError, ModelNotFoundError
from shared.vision.batches import Batches
from shared.vision.graphs import (
    GRAPH,
    WEIGHTS,
    Engines,
    Facts,
    Graphs,
    engine_facts,
    facts,
    read_ahead,
    tensorrt_version,
)
from shared.vision.session import Session, device_error, load_error
from shared.vision.threads import cpu_limit

_ERROR_LEVEL = 3
_SMALLEST_WEIGHT = 1024
"""Bytes of a tensor that a kept graph has in its weights file."""

log = logging.getLogger(__name__)

_CPU_NAME = "cpu"
_CPU = "CPUExecutionProvider"
_CUDA = "CUDAExecutionProvider"
_TENSORRT = "TensorrtExecutionProvider"

CPU_ELEMENTS = 1 << 17
GPU_ELEMENTS = 1 << 22
"""Input numbers of one run where no other budget is set. On a CPU two tiles of 128 x 128: a run of 16 leaves the caches
and takes 2-15 % more time than 16 single ones (measured, one thread, the swappers' stand-ins). On a GPU 85 such tiles,
which a swapper's activations turn into about two gigabytes."""


class Device(StrEnum):
    """Where sessions run."""

    CPU = "cpu"
    GPU = "gpu"
    """CUDA, or GpuUnavailableError."""
    GPU_PREFERRED = "gpu-preferred"
    """CUDA where there is one, else the CPU; `Session.provider` says which it became."""


class Runtime:
    """Session factory of one process."""

    def __init__(
        self,
        device: Device | str = Device.CPU,
        *,
        threads: int | None = None,
        tensorrt: bool = False,
        engines: Engines | None = None,
        batch_elements: int = 0,
        graphs: Graphs | None = None,
    ) -> None:
        """`threads`: most threads of one session, and OpenCV's number; by default what the cgroup allows.

        `tensorrt`: run through TensorRT, which builds an engine for every shape (minutes; kept in `engines`) or
        GpuUnavailableError. `batch_elements`: most input numbers of one run, 0 for the device's default.
        `graphs`: where optimised graphs are kept, so that only the first process optimises; None: nowhere.
        Raises ConfigError for TensorRT on anything but a required GPU.
        """
        self.device = Device(device)
        if tensorrt and self.device is not Device.GPU:
            raise ConfigError("TensorRT needs the device to be gpu, so that nothing else can happen in silence.")
        self.threads = max(1, threads if threads is not None else cpu_limit())
        self._tensorrt = tensorrt
        self._engines = engines
        self._batch_elements = batch_elements
        self._graphs = graphs
        self._lock = threading.Lock()
        self._opencv_follows = False
        self._providers_got: set[str] = set()

    def apart(self) -> Runtime:
        """The same with a `provider` of its own, for one of several users."""
        other = copy.copy(self)
        other._providers_got = set()
        return other

    @property
    def provider(self) -> str:
        """Where the sessions that were made here run: `tensorrt`, `cuda`, or `cpu` when one does, or there is none."""
        return min(self._providers_got, default=_CPU_NAME)

    def session(self, path: Path, *, threads: int | None = None) -> Session:
        """Load one .onnx file.

        `threads`: fewer threads than the runtime's own number, for small models that lose by sharing.
        Raises GpuUnavailableError, GpuMemoryError, GpuFaultError, ModelNotFoundError, ModelInvalidError,
        ModelIncompatibleError (context: `model`, `runtime` version numbers), ModelIncompleteError (context: `file`).
        """
        if not path.is_file():
            raise ModelNotFoundError(f"No model file {path.name}")
        self._limit_opencv()
        ort = _onnxruntime()
        providers = self._providers(ort, path)
        most = min(self.threads, threads or self.threads)
        errors = _ort_errors()
        try:
            session = _Load(ort, path, most, providers, errors).run(self._graphs, self._known(ort, providers[0][0]))
        except errors as error:
            if not path.is_file():  # removed while it was being read: another version, or a damaged one
                raise ModelNotFoundError(f"No model file {path.name}") from error
            raise load_error(path, error) from error
        self._check_provider(session.get_providers()[0])
        made = Session(session, path, errors, ort.OrtValue)
        self._providers_got.add(made.provider)
        return made

    def batches(self, session: Session) -> Batches:
        """The session for any number of rows, run in batches that the memory budget allows."""
        default = CPU_ELEMENTS if session.provider == "cpu" else GPU_ELEMENTS
        return Batches(session, self._batch_elements or default)

    def _known(self, ort: ModuleType, provider: str) -> Facts | None:
        """What a kept graph depends on; None where the session may turn out to run on something else."""
        certain = provider == _CPU or self.device is Device.GPU
        return facts(ort.__version__, provider) if self._graphs is not None and certain else None

    def _wanted(self) -> list[str]:
        if self.device is Device.CPU:
            return [_CPU]
        return [_TENSORRT, _CUDA, _CPU] if self._tensorrt else [_CUDA, _CPU]

    def _providers(self, ort: ModuleType, path: Path) -> list[tuple[str, dict[str, str]]]:
        available, wanted = ort.get_available_providers(), self._wanted()
        self._check_provider(wanted[0] if wanted[0] in available else wanted[-1])
        if _CUDA in wanted and _CUDA in available:
            ort.preload_dlls()  # CUDA and cuDNN from their own packages, where they are not on the library path
        options = {_CUDA: _CUDA_OPTIONS, _TENSORRT: self._tensorrt_options(ort, path)}
        return [(name, options.get(name, {})) for name in wanted if name in available]

    def _tensorrt_options(self, ort: ModuleType, path: Path) -> dict[str, str]:
        # fp16 stays off: inswapper overflows in it (engine.md part C).
        known = engine_facts(ort.__version__, tensorrt_version()) if self._tensorrt and self._engines else None
        folder = self._engines.folder(path, known) if self._engines and known else None
        if folder is None:
            return {}
        return {
            "trt_engine_cache_enable": "1",
            "trt_engine_cache_path": str(folder),
            "trt_timing_cache_enable": "1",
            "trt_timing_cache_path": str(folder),
        }

    def _check_provider(self, got: str) -> None:
        # get_available_providers() lists CUDA also where its libraries do not load; only the session tells.
        wanted = self._wanted()[0]
        if got != wanted and self.device is not Device.GPU_PREFERRED:
            raise GpuUnavailableError(f"Asked for {wanted}, got {got}", context={"wanted": wanted, "got": got})

    def _limit_opencv(self) -> None:
        with self._lock:
            if not self._opencv_follows:
                import cv2

                cv2.setNumThreads(self.threads)
                self._opencv_follows = True


@dataclass(frozen=True)
class _Load:
    """One model file on its way to an InferenceSession."""

    ort: ModuleType
    path: Path
    threads: int
    providers: Sequence[tuple[str, dict[str, str]]]
    errors: tuple[type[Exception], ...]

    def run(self, graphs: Graphs | None, known: Facts | None) -> Any:
        """Of the kept graph, or of the model itself, whose graph is kept on the way."""
        if graphs is None or known is None:
            return self._session(self.path, self._options())
        kept = graphs.find(self.path, known)
        if kept is not None:
            try:
                return self._mapped(kept)
            except self.errors as error:
                if device_error(error, ""):
                    raise
                log.warning("a kept graph of %s cannot be loaded: %s", self.path.name, error)
                graphs.discard(kept)
        # whatever keeps it from being kept, the model itself may load
        with suppress(OSError, *self.errors), graphs.keep(self.path, known) as folder:
            return self._kept_in(folder) if folder else self._session(self.path, self._options())
        return self._session(self.path, self._options())

    def _mapped(self, graph: Path) -> Any:
        threading.Thread(target=read_ahead, args=(graph.with_name(WEIGHTS),), daemon=True).start()
        options = self._options()
        options.graph_optimization_level = self.ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        return self._session(graph, options)

    def _kept_in(self, folder: Path) -> Any:
        options = self._options()
        options.optimized_model_filepath = str(folder / GRAPH)
        prefix = "session.optimized_model_external_initializers"
        options.add_session_config_entry(f"{prefix}_file_name", WEIGHTS)
        options.add_session_config_entry(f"{prefix}_min_size_in_bytes", str(_SMALLEST_WEIGHT))
        session = self._session(self.path, options)
        if session.get_providers()[0] != self.providers[0][0]:
            raise OSError(f"The graph was made for {session.get_providers()[0]}")
        return session

    def _options(self) -> Any:
        return session_options(self.ort, self.threads)

    def _session(self, path: Path, options: Any) -> Any:
        return self.ort.InferenceSession(str(path), options, providers=self.providers)


_CUDA_OPTIONS = {
    # Batches differ from frame to frame: an exhaustive search would be run for every new size.
    "cudnn_conv_algo_search": "HEURISTIC",
    # Powers of two would hold up to twice the memory that is needed, and the next process may share the GPU.
    "arena_extend_strategy": "kSameAsRequested",
}


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
    # onnxruntime's errors share no base class of their own, and each release adds some. What has no class of it, such
    # as a C++ allocation that failed, arrives as one of Python's.
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    kinds = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (*kinds, RuntimeError, MemoryError)
