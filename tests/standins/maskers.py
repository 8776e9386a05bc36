"""Stand-ins for XSeg and BiSeNet whose answers can be told from a crop's colours."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.standins.graph import FREE, Graph

XSEG = {"size": 256}
BISENET = {"size": 512}
SKIN, BROW, HAIR = 1, 2, 17


def xseg(folder: Path, size: int = 256, batch: int | str = FREE) -> dict[str, Path]:
    """A pixel's probability is its blue (the first channel of BGR)."""
    graph = Graph("xseg")
    value = graph.input("input", [batch, size, size, 3])
    blue = graph.node("MatMul", [value, graph.constant([[1.0], [0.0], [0.0]])])
    graph.output(blue, "output", [batch, size, size, 1])
    return {"model": graph.save(folder)}


def bisenet(folder: Path, size: int = 512, batch: int | str = FREE) -> dict[str, Path]:
    """Red is skin, green a brow, blue hair, black background; two more outputs, as the real graphs have them."""
    graph = Graph("bisenet")
    value = graph.input("input", [batch, 3, size, size])
    weights, bias = np.zeros((19, 3, 1, 1)), np.full(19, -1.0)
    for number, channel in ((SKIN, 0), (BROW, 1), (HAIR, 2)):
        weights[number, channel], bias[number] = (0.229, 0.224, 0.225)[channel], (0.485, 0.456, 0.406)[channel]
    bias[0] = 0.1
    logits = graph.node("Conv", [value, graph.constant(weights), graph.constant(bias)], kernel_shape=[1, 1])
    for name in ("output", "output_16", "output_32"):
        graph.output(logits, name, [batch, 19, size, size])
    return {"model": graph.save(folder)}
