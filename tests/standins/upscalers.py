"""Stand-ins for the tiled upscalers: plain resizing, with the faults at the rim that real networks have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from shared.vision.protocols import Parameter
from tests.standins.graph import FREE, Graph

FAMILIES: Mapping[str, Mapping[str, Parameter]] = {
    "real_esrgan_x2": {"factor": 2, "tile": 256, "pad": 16, "overlap": 8},
    "real_esrgan_x4": {"factor": 4, "tile": 256, "pad": 16, "overlap": 8},
    "real_esrgan_x8": {"factor": 8, "tile": 256, "pad": 16, "overlap": 8},
    "span_x4": {"factor": 4, "tile": 128, "pad": 8, "overlap": 4},
}


def build(
    folder: Path,
    parameters: Mapping[str, Parameter],
    *,
    slope: float = 0.0,
    blurs: int = 0,
    batch: int | str = FREE,
) -> dict[str, Path]:
    """Every pixel repeated `factor` times each way.

    `slope`: every tile gets darker on its way to the right, then down, by this much in all: neighbouring tiles
    disagree where they meet. `blurs`: so many 3 x 3 means first, which see black beyond the tile as convolutions do.
    """
    factor, tile = int(parameters["factor"]), int(parameters["tile"])
    graph = Graph("upscaler")
    value = graph.input("input", [batch, 3, tile, tile])
    kernel = graph.constant(np.full((3, 1, 3, 3), 1 / 9))
    for _ in range(blurs):
        value = graph.node("Conv", [value, kernel], kernel_shape=[3, 3], pads=[1] * 4, group=3)
    scales = graph.constant([1, 1, factor, factor], np.float32)
    value = graph.node(
        "Resize",
        [value, "", scales],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    if slope:
        line = np.linspace(0, slope / 2, tile * factor)
        value = graph.node("Sub", [value, graph.constant((line[:, None] + line)[None, None])])
    graph.output(value, "output", [batch, 3, tile * factor, tile * factor])
    return {"model": graph.save(folder)}
