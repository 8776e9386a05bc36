"""A writer of small ONNX graphs: seeded weights, one value per node.

The same calls give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
IR_VERSION = 9
"""Old enough for every supported runtime, and fixed, so that the bytes do not follow the `onnx` package."""
FREE = "batch"

Shape = Sequence[int | str]


class Graph:
    """Nodes in the order in which they are asked for; methods give the name of the value they make."""

    def __init__(self, name: str, seed: int = 0, *, half: bool = False) -> None:
        """`half`: weights in float16; inputs and outputs stay float32."""
        self.name = name
        self.random = np.random.default_rng(seed)
        self.half = half
        self.dtype = np.float16 if half else np.float32
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: Shape) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.node("Cast", [name], to=TensorProto.FLOAT16) if self.half else name

    def output(self, value: str, name: str, shape: Shape) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.nodes.append(helper.make_node("Cast", [value], [name], to=TensorProto.FLOAT))

    def node(self, operator: str, values: Sequence[str], **attributes: object) -> str:
        made = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(values), [made], name=made, **attributes))
        return made

    def constant(self, values: ArrayLike, dtype: type[np.generic] | None = None, name: str = "") -> str:
        name = name or f"constant_{len(self.weights)}"
        array: NDArray[np.generic] = np.asarray(values, dtype or self.dtype)
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def noise(self, *shape: int, gain: float = 1.0) -> str:
        """Weights with a spread that keeps the spread of what goes through them."""
        spread = np.sqrt(gain / np.prod(shape[1:]))
        return self.constant(self.random.standard_normal(shape) * spread)

    def conv(self, value: str, channels_in: int, channels_out: int, kernel: int, stride: int = 1) -> str:
        weights = self.noise(channels_out, channels_in, kernel, kernel, gain=2.0)
        edge = (kernel - stride + 1) // 2 if stride < kernel else 0
        return self.node("Conv", [value, weights], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[edge] * 4)

    def dense(self, value: str, width_in: int, width_out: int) -> str:
        return self.node("MatMul", [value, self.noise(width_in, width_out, gain=width_out / width_in)])

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        return self.node("Reshape", [value, self.constant(shape, np.int64)])

    def enlarge(self, value: str, factor: int) -> str:
        scales = self.constant([1, 1, factor, factor], np.float32)
        return self.node("Resize", [value, "", scales], mode="linear")

    def scale(self, value: str, factor: float, shift: float = 0.0) -> str:
        product = self.node("Mul", [value, self.constant(factor)])
        return self.node("Add", [product, self.constant(shift)]) if shift else product

    def clip(self, value: str, low: float, high: float) -> str:
        return self.node("Clip", [value, self.constant(low), self.constant(high)])

    def save(self, folder: Path, file: str = "") -> Path:
        """Write `<name>.onnx` (or `file`) into the folder."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="wakeswap_standins"
        )
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=model.ByteSize() < 1 << 30)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (file or f"{self.name}.onnx")
        path.write_bytes(model.SerializeToString(deterministic=True))
        return path
