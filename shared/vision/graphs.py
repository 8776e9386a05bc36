"""Where optimised graphs are kept, as the runtime sees it, and what one may be used for.

onnxruntime's optimiser bakes the processor's own layouts into a graph: one that was made for another version,
processor or GPU may be wrong or slow, so all of that is part of its name. Knows the machine, no model.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

GRAPH, WEIGHTS = "graph.onnx", "weights.bin"
SMALLEST = 1 << 20
"""Bytes of a model file that is worth it: 2.4 MB gain 13 ms of CPU, 24 MB 70 ms, 530 MB seconds (docs/loading.md)."""

CPU_INFO = Path("/proc/cpuinfo")
GPUS = Path("/proc/driver/nvidia/gpus")
_TENSORRT = ("libnvinfer.so.10", "libnvinfer.so.11")
"""Names of its library in the versions that onnxruntime is built for."""
PRECISION = "as the model's"
"""What graphs and engines compute in: nothing is converted (fp16 is a model of its own in the catalogue)."""

Facts = Mapping[str, str]


class Graphs(Protocol):
    def find(self, path: Path, facts: Facts) -> Path | None:
        """The graph that was made from the model file `path` for exactly these facts, complete; or None."""
        ...

    def keep(self, path: Path, facts: Facts) -> AbstractContextManager[Path | None]:
        """A folder for GRAPH and WEIGHTS, kept when the block ends without an error.

        None: not here (read-only, no room, a file of unknown content) or not now (another process is at it).
        """
        ...

    def discard(self, graph: Path) -> None:
        """Forget a graph that could not be loaded."""
        ...


class Engines(Protocol):
    def folder(self, path: Path, facts: Facts) -> Path | None:
        """Where TensorRT keeps the engines that it makes of the model file `path` for exactly these facts.

        None: none are kept here (a file of unknown content, a read-only folder that has none of it).
        """
        ...


def facts(version: str, provider: str) -> Facts | None:
    """What a graph made here by onnxruntime `version` depends on; None where that cannot be told or nothing is kept."""
    device = _cpu() if provider == "CPUExecutionProvider" else _gpu() if provider == "CUDAExecutionProvider" else ""
    return _facts(version, provider, device) if device else None


def engine_facts(version: str, tensorrt: str) -> Facts | None:
    """The same of TensorRT's engines, which depend on the version of TensorRT too; None where one cannot be told."""
    device = _gpu()
    if not (device and tensorrt):
        return None
    return {**_facts(version, "TensorrtExecutionProvider", device), "tensorrt": tensorrt}


def tensorrt_version() -> str:
    """Of the library that onnxruntime would load, which is loaded for it; empty where there is none."""
    for name in _TENSORRT:
        try:
            number = int(ctypes.CDLL(name).getInferLibVersion())
        except (OSError, AttributeError):
            continue
        return f"{name} {number}"
    return ""


def read_ahead(path: Path) -> None:
    """Have the kernel read the file while imports and other loads go on; mapped pages would come one by one."""
    with suppress(OSError), path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def _facts(version: str, provider: str, device: str) -> Facts:
    machine = platform.machine()
    return {"runtime": version, "provider": provider, "machine": machine, "device": device, "precision": PRECISION}


def _cpu() -> str:
    """Model and instruction sets of the first processor: the layout of convolutions follows them."""
    try:
        with CPU_INFO.open("rb") as file:
            first = file.read(16384).split(b"\n\n", 1)[0]
    except OSError:
        return ""
    names = (b"flags", b"Features", b"CPU part", b"vendor_id", b"cpu family", b"model\t")
    told = [line for line in first.splitlines() if line.startswith(names)]
    return hashlib.sha256(b"\n".join(told)).hexdigest() if told else ""


def _gpu() -> str:
    """Models of all NVIDIA GPUs in sight, as the driver names them."""
    try:
        texts = [path.read_text(encoding="utf-8") for path in sorted(GPUS.glob("*/information"))]
    except OSError:
        return ""
    return " ".join(line.partition(":")[2].strip() for text in texts for line in text.splitlines() if "Model" in line)
