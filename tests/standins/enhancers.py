"""Stand-ins for the face restorers: a straight line from each input level to an output level, and one marked place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from shared.vision.protocols import Parameter
from tests.standins.graph import FREE, Graph

FAMILIES: Mapping[str, Mapping[str, Parameter]] = {
    "gfpgan": {"size": 512, "template": "ffhq_512"},
    "codeformer": {"size": 512, "template": "ffhq_512", "weight_input": True},
    "gpen_256": {"size": 256, "template": "arcface_128"},
    "gpen_1024": {"size": 1024, "template": "ffhq_512"},
    "gpen_2048": {"size": 2048, "template": "ffhq_512"},
}
"""Every combination of numbers that the catalogue has."""


def build(
    folder: Path,
    parameters: Mapping[str, Parameter],
    *,
    gain: float = 1.0,
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0),
    spot: tuple[int, int] | None = None,
    batch: int | str = FREE,
) -> dict[str, Path]:
    """Output = input * gain + shift (red, green, blue), not clipped; with `weight_input`, times the weight as well.

    `spot` (x, y): the 9 x 9 pixels round it become white, whatever the picture.
    """
    size = int(parameters["size"])
    graph = Graph("restorer")
    value = graph.input("input", [batch, 3, size, size])
    if parameters.get("weight_input"):
        graph.inputs.append(helper.make_tensor_value_info("weight", TensorProto.DOUBLE, [1]))
        value = graph.node("Mul", [value, graph.node("Cast", ["weight"], to=TensorProto.FLOAT)])
    value = graph.node("Mul", [value, graph.constant(gain)])
    value = graph.node("Add", [value, graph.constant(np.reshape(shift, (1, 3, 1, 1)))])
    if spot:
        mark = np.zeros((1, 1, size, size))
        mark[:, :, spot[1] - 4 : spot[1] + 5, spot[0] - 4 : spot[0] + 5] = 100
        value = graph.node("Add", [value, graph.constant(mark)])
    graph.output(value, "output", [batch, 3, size, size])
    return {"model": graph.save(folder)}
