"""Stand-ins for the detectors and 2dfan4: the published graphs' inputs and outputs, filled by hand.

Most give constants, so that decoding is checked against boxes written down in a test; `bright` finds what is bright in
one channel, so that the way into the network is seen too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.standins.graph import Graph, Shape

Array = NDArray[np.float32]
STRIDES = (8, 16, 32)
YUNET = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in STRIDES]


def constant(folder: Path, name: str, outputs: dict[str, Array], sides: Sequence[int | str]) -> Path:
    """A graph `input` [1, 3, *sides] -> the given outputs, whatever it sees."""
    graph = Graph(name)
    graph.input("input", [1, 3, *sides])
    for output, values in outputs.items():
        graph.output(graph.constant(values), output, values.shape)
    return graph.save(folder)


def grids(side: int, anchors: int, widths: Sequence[int], *, batch: bool) -> list[Array]:
    """Zeros for every width and stride, in the order of the published graphs; with an axis for the batch or without."""
    counts = [(side // stride) ** 2 * anchors for stride in STRIDES]
    head = (1,) if batch else ()
    return [np.zeros((*head, count, width), np.float32) for width in widths for count in counts]


def bright(folder: Path, channel: int) -> Path:
    """SCRFD's interface with free sides. The second anchor of a cell of 8 pixels has the cell's mean in `channel` of
    the input as its score, a box of 24 x 24 pixels around the cell's corner and its five points there."""
    graph = Graph(f"bright_{channel}")
    seen = graph.input("input", [1, 3, "height", "width"])
    picked = graph.node("Gather", [seen, graph.constant([channel], np.int64)], axis=1)
    scores = [_scores(graph, picked, stride, 1.0 if stride == STRIDES[0] else 0.0) for stride in STRIDES]
    for index, stride in enumerate(STRIDES):
        graph.output(scores[index], f"score_{stride}", ["n", 1])
    for name, values in (("box", [1.5] * 4), ("point", [0.0] * 10)):
        for index, stride in enumerate(STRIDES):
            zeros = graph.scale(scores[index], 0.0)
            graph.output(graph.node("Add", [zeros, graph.constant(values)]), f"{name}_{stride}", ["n", len(values)])
    return graph.save(folder)


def _scores(graph: Graph, picked: str, stride: int, gain: float) -> str:
    means = graph.node("AveragePool", [picked], kernel_shape=[stride] * 2, strides=[stride] * 2)
    column = graph.reshape(graph.scale(means, gain), [-1, 1])
    pair = graph.node("Concat", [graph.scale(column, 0.0), column], axis=1)
    return graph.reshape(pair, [-1, 1])


def fan(folder: Path, points: Array, peak: float, shape: Shape = ("batch", 3, 256, 256)) -> Path:
    """2dfan4's interface: `points` [68, 2] of the 64 grid for every row, every heat map with that peak; the third
    number of a point is the mean of the red channel, so that colour and scaling show."""
    graph = Graph("fan")
    seen = graph.input("input", list(shape))
    red = graph.node("Gather", [seen, graph.constant([0], np.int64)], axis=1)
    mean = graph.node("GlobalAveragePool", [red])
    rest = graph.reshape(graph.scale(mean, 1.0), [-1, 1, 1])
    zeros = graph.scale(rest, 0.0)
    graph.output(
        graph.node("Concat", [graph.node("Add", [zeros, graph.constant(points)]), _column(graph, rest)], axis=2),
        "landmarks",
        ["batch", 68, 3],
    )
    maps = np.zeros((1, 68, 64, 64), np.float32)
    maps[:, :, 10, 20] = peak
    graph.output(graph.node("Add", [graph.scale(mean, 0.0), graph.constant(maps)]), "heatmaps", ["batch", 68, 64, 64])
    return graph.save(folder)


def _column(graph: Graph, value: str) -> str:
    return graph.node("Add", [value, graph.constant(np.zeros((68, 1), np.float32))])
