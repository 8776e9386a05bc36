"""Give a graph that was exported for one picture a free batch, and prove that it still computes the same.

A batch of one is frozen in two places: in the shapes of inputs and outputs, and in constant shapes of Reshape nodes.
Both are freed; then the original and the new graph run the same samples. A graph that disagrees (convolutions
grouped by sample, say) stays as it was published. Runs at fetch time only.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from shared.errors import ModelError
from shared.models import onnx_file
from shared.vision.runtime import Device, Runtime

BATCH = "N"
FREE_SIDE = 64
"""Pixels that a sample has where the graph leaves a size free."""
TOLERANCE, HALF_TOLERANCE = 1e-4, 1e-2
"""Largest difference, in parts of the output's largest value: float32 graphs, and those with float16 inside."""

Feeds: TypeAlias = Mapping[str, NDArray[np.generic]]
Outputs: TypeAlias = list[NDArray[np.float32]]


@dataclass(frozen=True)
class Sample:
    """Two samples for every input of `batched`, one value for any other."""

    feeds: Feeds
    batched: frozenset[str]
    tolerance: float

    def row(self, index: int) -> Feeds:
        """One of the two alone."""
        return {name: value[index : index + 1] if name in self.batched else value for name, value in self.feeds.items()}


def convert(source: Path, target: Path) -> str | None:
    """Write `source` with a free batch to `target`, or unchanged; the answer says why it had to stay as it is.

    Raises ModelInvalidError and its kin when `source` is no model that this runtime could load.
    """
    onnx_file.check(source)
    sample = _rewritten(source, target)
    if sample is None:
        shutil.copyfile(source, target)
    elif reason := _difference(source, target, sample):
        shutil.copyfile(source, target)
        return f"The batch stays 1: {reason}"
    return None


def _rewritten(source: Path, target: Path) -> Sample | None:
    """What to try the two graphs with; None when the batch is free already.

    The parsed graph, as large as the file, ends with this function: the sessions after it need the memory.
    """
    graph = (model := onnx.load(source)).graph
    inputs = _frozen_inputs(graph)
    if not inputs:
        return None
    batched = frozenset(value.name for value in inputs)
    sample = Sample(_feeds(graph, batched), batched, HALF_TOLERANCE if _is_half(graph) else TOLERANCE)
    _free([*inputs, *graph.output])
    _free_reshapes(graph)
    del graph.value_info[:]  # shapes for a batch of one in the middle of the graph
    target.write_bytes(model.SerializeToString(deterministic=True))
    return sample


def _frozen_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Inputs of at least two dimensions whose first one is 1: what is per sample, unlike a codeformer's weight."""
    weights = {tensor.name for tensor in graph.initializer}
    values = [value for value in graph.input if value.name not in weights]
    return [value for value in values if len(_dims(value)) > 1 and _dims(value)[0].dim_value == 1]


def _dims(value: onnx.ValueInfoProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


def _free(values: Iterable[onnx.ValueInfoProto]) -> None:
    for value in values:
        dims = _dims(value)
        if len(dims) > 1 and dims[0].dim_value == 1:
            dims[0].Clear()
            dims[0].dim_param = BATCH


def _free_reshapes(graph: onnx.GraphProto) -> None:
    """Let every Reshape to [1, ...] take its first size from what is left over, or from its input."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
    for node in [node for node in graph.node if node.op_type == "Reshape" and node.input[1] in constants]:
        shape = numpy_helper.to_array(constants[node.input[1]]).reshape(-1).tolist()
        if len(shape) > 1 and shape[0] == 1:
            shape[0] = 0 if -1 in shape else -1
            name = f"{node.output[0]}_free_batch"
            # in front: what callers look for at the end of the list (INSwapper's emap) stays there
            graph.initializer.insert(0, helper.make_tensor(name, TensorProto.INT64, [len(shape)], shape))
            node.input[1] = name


def _is_half(graph: onnx.GraphProto) -> bool:
    return any(tensor.data_type == TensorProto.FLOAT16 for tensor in graph.initializer)


def _feeds(graph: onnx.GraphProto, batched: frozenset[str]) -> Feeds:
    """Random numbers in 0..1, the same ones every time."""
    rng = np.random.default_rng(0)
    weights = {tensor.name for tensor in graph.initializer}
    feeds: dict[str, NDArray[np.generic]] = {}
    for value in graph.input:
        if value.name not in weights:
            shape = [dim.dim_value or FREE_SIDE for dim in _dims(value)]
            shape[:1] = [2] if value.name in batched else shape[:1]
            kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = rng.random(shape).astype(kind)
    return feeds


def _difference(source: Path, target: Path, sample: Sample) -> str:
    """Why the two graphs are not the same, or nothing: each sample alone in both, and both samples at once."""
    alone, same = [sample.row(0), sample.row(1)], partial(_same, sample.tolerance)
    try:
        expected = _run(source, alone)
    except ModelError as error:
        return f"the original does not run on a sample ({error.detail})."
    try:
        *singles, both = _run(target, [*alone, sample.feeds])
    except ModelError as error:
        return f"a free batch does not run ({error.detail})."
    rows = [[output[row : row + 1] for output in both] for row in (0, 1)]
    if not all(map(same, expected, singles)):
        return "one sample gives another result."
    if not all(map(same, expected, rows)):
        return "two samples at once give another result than one by one."
    return ""


def _run(path: Path, runs: Sequence[Feeds]) -> list[Outputs]:
    session = Runtime(Device.CPU).session(path)
    return [session.run(feeds) for feeds in runs]


def _same(tolerance: float, expected: Outputs, given: Outputs) -> bool:
    """Whether every output has the same shape and, but for `tolerance`, the same values; NaN is never the same."""
    for one, other in zip(expected, given, strict=True):
        if one.shape != other.shape:
            return False
        limit = tolerance * max(1.0, float(np.abs(one).max(initial=0)))
        if not np.allclose(one, other, rtol=0, atol=limit):
            return False
    return True
