"""The matrix that INSwapper's graphs carry for their callers: the last initializer, 512 x 512, as a .npy beside them.

Taken once, at fetch time, so that no process reads half a gigabyte of graph for one megabyte of it.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from shared.errors import ModelInvalidError
from shared.models.wire import Span, fields

SIDE = 512
_GRAPH, _INITIALIZER = 7, 5
"""Field numbers of ModelProto and GraphProto in onnx.proto3."""


def convert(source: Path, target: Path) -> None:
    """Write the last initializer of the graph `source` as float32 [512, 512]. Raises ModelInvalidError."""
    try:
        matrix = numpy_helper.to_array(_last_initializer(source))
    except (ValueError, IndexError, DecodeError) as error:
        raise ModelInvalidError("The graph has no initializer that can be read.") from error
    if matrix.shape != (SIDE, SIDE) or matrix.dtype not in (np.float16, np.float32):
        raise ModelInvalidError(f"The graph's last initializer is {matrix.dtype} {matrix.shape}, no emap.")
    with target.open("wb") as file:
        np.save(file, np.ascontiguousarray(matrix, np.float32))


def _last_initializer(path: Path) -> onnx.TensorProto:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        graph = _last(data, (0, len(data)), _GRAPH)
        tensor = _last(data, graph, _INITIALIZER)
        found: onnx.TensorProto = onnx.TensorProto.FromString(data[slice(*tensor)])
        return found


def _last(data: mmap.mmap, message: Span, wanted: int) -> Span:
    """Where the last field of this number lies. Raises ValueError when there is none."""
    found: Span = ()
    for number, _, span in fields(data, *message) if message else ():
        if number == wanted:
            found = span
    if not found:
        raise ValueError(f"no field {wanted}")
    return found
