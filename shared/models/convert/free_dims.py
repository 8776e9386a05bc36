"""Give an image-to-maps ONNX graph a free batch and free picture size.

Exporters write the size of their example picture into the graph; a fully convolutional network does not need it.
Also takes the weights out of `graph.input`, where IR version 3 listed them (there they count as values the caller
may replace, and the runtime cannot fold them), and drops weights that no node reads. Runs at fetch time only.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from shared.models.convert.saving import save

PICTURE = ("N", "", "H", "W")
MAP = ("N", "", "h", "w")
"""Names of the freed dimensions of an input and an output; an empty name keeps the dimension (channels)."""


def convert(source: Path, target: Path) -> None:
    """Write `source` with free dimensions to `target`. The same input gives the same bytes.

    Raises ModelInvalidError.
    """
    model = onnx.load(source)
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)
    for value in graph.input:
        _free(value, PICTURE)
    for value in graph.output:
        _free(value, MAP)
    used = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.value_info[:]  # shapes of the example picture in the middle of the graph
    save(model, target)


def _free(value: onnx.ValueInfoProto, names: tuple[str, ...]) -> None:
    for dimension, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
        if name:
            dimension.Clear()
            dimension.dim_param = name
