"""Convert a small float TFLite network (MediaPipe's face mesh) to ONNX: NCHW, free batch, one runtime for all.

Covers the operators that these networks use and refuses every other one by name, so a graph is either converted
exactly or not at all. TFLite keeps pictures as [batch, height, width, channels] and weights accordingly; here every
tensor is turned to channels first, and each output is flattened to [batch, values] in TFLite's own order.
Runs at fetch time only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import onnx
import tflite
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from shared.errors import ModelInvalidError
from shared.models.convert.saving import save

OPSET = 17
IR_VERSION = 8
"""Old enough for every supported runtime, and fixed, so that the bytes do not follow the `onnx` package."""

Array = NDArray[np.generic]
Attribute = str | int | Sequence[int]


class Options(Protocol):
    def Init(self, buf: bytes, pos: int) -> None: ...  # noqa: N802 (flatbuffers' own name)


O = TypeVar("O", bound=Options)  # noqa: E741

_TYPES = {tflite.TensorType.FLOAT32: np.float32, tflite.TensorType.INT32: np.int32}
_OPERATORS = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}


class UnsupportedGraphError(ModelInvalidError):
    """The network has something this converter does not know how to keep exact."""


def convert(source: Path, target: Path) -> None:
    """Write `source` as ONNX to `target`. The same input gives the same bytes. Raises UnsupportedGraphError."""
    model = tflite.Model.GetRootAsModel(source.read_bytes(), 0)
    if model.SubgraphsLength() != 1:
        raise UnsupportedGraphError("One subgraph expected.")
    save(_Conversion(model).run(), target)


class _Conversion:
    """One pass over the operators; every TFLite tensor `i` becomes the ONNX value `t<i>`."""

    def __init__(self, model: tflite.Model) -> None:
        self.model = model
        self.graph = model.Subgraphs(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.handlers: dict[str, Callable[[tflite.Operator, list[int], int], None]] = {
            "CONV_2D": self.convolution,
            "DEPTHWISE_CONV_2D": self.depthwise,
            "MAX_POOL_2D": self.max_pool,
            "PRELU": self.prelu,
            "ADD": self.add,
            "PAD": self.pad,
        }

    def run(self) -> onnx.ModelProto:
        first = int(self.graph.Inputs(0))
        _, height, width, channels = self.shape(first)
        self.emit("Identity", ["input"], f"t{first}")
        for index in range(self.graph.OperatorsLength()):
            self.operator(self.graph.Operators(index))
        outputs = [self.output(int(self.graph.Outputs(index))) for index in range(self.graph.OutputsLength())]
        graph = helper.make_graph(
            self.nodes, "from_tflite", [_value("input", ["N", channels, height, width])], outputs, self.weights
        )
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], producer_name="wakeswap")
        model.ir_version = IR_VERSION
        return model

    def operator(self, operator: tflite.Operator) -> None:
        code = self.model.OperatorCodes(operator.OpcodeIndex())
        name = _OPERATORS[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
        if name not in self.handlers:
            raise UnsupportedGraphError(f"Operator {name} is not handled.")
        self.handlers[name](operator, [int(i) for i in operator.InputsAsNumpy()], int(operator.Outputs(0)))

    def convolution(self, operator: tflite.Operator, inputs: list[int], output: int) -> None:
        kernel = self.constant(inputs[1]).transpose(0, 3, 1, 2)  # [out, kh, kw, in] -> [out, in, kh, kw]
        self.conv(_options(operator, tflite.Conv2DOptions()), inputs, output, kernel, group=1)

    def depthwise(self, operator: tflite.Operator, inputs: list[int], output: int) -> None:
        kernel = self.constant(inputs[1]).transpose(3, 0, 1, 2)  # [1, kh, kw, channels] -> [channels, 1, kh, kw]
        group = self.shape(inputs[0])[3]
        self.conv(_options(operator, tflite.DepthwiseConv2DOptions()), inputs, output, kernel, group=group)

    def conv(
        self,
        options: tflite.Conv2DOptions | tflite.DepthwiseConv2DOptions,
        inputs: list[int],
        output: int,
        kernel: Array,
        *,
        group: int,
    ) -> None:
        bias = self.constant(inputs[2])
        self.emit(
            "Conv",
            [f"t{inputs[0]}", self.weight(f"w{output}", kernel), self.weight(f"b{output}", bias)],
            f"t{output}",
            activation=options.FusedActivationFunction(),
            kernel_shape=list(kernel.shape[2:]),
            group=group,
            strides=[options.StrideH(), options.StrideW()],
            dilations=[options.DilationHFactor(), options.DilationWFactor()],
            auto_pad=_padding(options.Padding()),
        )

    def max_pool(self, operator: tflite.Operator, inputs: list[int], output: int) -> None:
        options = _options(operator, tflite.Pool2DOptions())
        self.emit(
            "MaxPool",
            [f"t{inputs[0]}"],
            f"t{output}",
            activation=options.FusedActivationFunction(),
            kernel_shape=[options.FilterHeight(), options.FilterWidth()],
            strides=[options.StrideH(), options.StrideW()],
            auto_pad=_padding(options.Padding()),
        )

    def prelu(self, _: tflite.Operator, inputs: list[int], output: int) -> None:
        """max(x, 0) - slope * max(-x, 0), of convolutions that look at one value each.

        onnxruntime's PRelu takes 60 % of the mesh's time, and only for convolutions, sums and Relu does it keep tensors
        in the blocks of channels that its kernels work on: with these alone the whole network stays in them.
        """
        slope = self.constant(inputs[1]).astype(np.float32).reshape(-1, 1, 1, 1)
        if len(slope) != self.shape(inputs[0])[3]:
            raise UnsupportedGraphError("PRELU is handled with a slope for every channel.")
        given, made = f"t{inputs[0]}", f"t{output}"
        self.each("negative", np.full_like(slope, -1), given, made)
        self.emit("Relu", [f"{made}_negative"], f"{made}_below")
        self.each("bent", -slope, f"{made}_below", made)
        self.emit("Relu", [given], f"{made}_above")
        self.emit("Add", [f"{made}_above", f"{made}_bent"], made)

    def each(self, what: str, factors: Array, given: str, made: str) -> None:
        """Every channel times its own factor [channels, 1, 1, 1], exactly."""
        weight = self.weight(f"{made}_{what}_factors", factors)
        self.emit("Conv", [given, weight], f"{made}_{what}", kernel_shape=[1, 1], group=len(factors))

    def add(self, operator: tflite.Operator, inputs: list[int], output: int) -> None:
        activation = _options(operator, tflite.AddOptions()).FusedActivationFunction()
        self.emit("Add", [f"t{i}" for i in inputs], f"t{output}", activation=activation)

    def pad(self, _: tflite.Operator, inputs: list[int], output: int) -> None:
        before_after = self.constant(inputs[1])[[0, 3, 1, 2]]  # [4, 2], axes to channels first
        more = int(before_after[1, 1])
        if before_after.sum() == more:  # empty channels at the end: a convolution makes them too, and stays in blocks
            channels = self.shape(inputs[0])[3]
            kernel = np.eye(channels + more, channels, dtype=np.float32)[:, :, None, None]
            self.emit("Conv", [f"t{inputs[0]}", self.weight(f"w{output}", kernel)], f"t{output}", kernel_shape=[1, 1])
            return
        pads = self.weight(f"p{output}", before_after.T.reshape(-1).astype(np.int64))
        self.emit("Pad", [f"t{inputs[0]}", pads], f"t{output}")

    def output(self, index: int) -> onnx.ValueInfoProto:
        """Flatten one output back in TFLite's order, under TFLite's name for it."""
        name, size = self.graph.Tensors(index).Name().decode(), int(np.prod(self.shape(index)[1:]))
        self.emit("Transpose", [f"t{index}"], f"t{index}_nhwc", perm=[0, 2, 3, 1])
        flat = self.weight(f"s{index}", np.array([0, size], np.int64))  # 0 keeps the batch
        self.emit("Reshape", [f"t{index}_nhwc", flat], name)
        return _value(name, ["N", size])

    def emit(
        self,
        kind: str,
        inputs: list[str],
        output: str,
        *,
        activation: int = tflite.ActivationFunctionType.NONE,
        **attributes: Attribute,
    ) -> None:
        if activation not in (tflite.ActivationFunctionType.NONE, tflite.ActivationFunctionType.RELU):
            raise UnsupportedGraphError(f"Fused activation {activation} is not handled.")
        fused = activation == tflite.ActivationFunctionType.RELU
        node = helper.make_node(kind, inputs, [f"{output}_linear" if fused else output])
        node.attribute.extend(helper.make_attribute(name, value) for name, value in sorted(attributes.items()))
        self.nodes.append(node)
        if fused:
            self.nodes.append(helper.make_node("Relu", [f"{output}_linear"], [output]))

    def weight(self, name: str, values: Array) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def constant(self, index: int) -> Array:
        tensor = self.graph.Tensors(index)
        raw = self.model.Buffers(tensor.Buffer()).DataAsNumpy()
        if index < 0 or isinstance(raw, int) or tensor.Type() not in _TYPES:
            raise UnsupportedGraphError(f"Tensor {index} has no values of a known type.")
        return np.frombuffer(raw.tobytes(), _TYPES[tensor.Type()]).reshape(self.shape(index))

    def shape(self, index: int) -> tuple[int, ...]:
        return tuple(int(size) for size in self.graph.Tensors(index).ShapeAsNumpy())


def _options(operator: tflite.Operator, options: O) -> O:
    table = operator.BuiltinOptions()
    options.Init(table.Bytes, table.Pos)
    return options


def _padding(code: int) -> str:
    return "SAME_UPPER" if code == tflite.Padding.SAME else "VALID"


def _value(name: str, shape: list[str | int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
