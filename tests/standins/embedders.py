"""A stand-in for ArcFace: picture to 512 numbers, spread as a recogniser's are (length about 20)."""

from __future__ import annotations

from pathlib import Path

from tests.standins.graph import FREE, Graph

PARAMETERS = {"size": 112, "template": "arcface_112_v2", "mean": 0.5, "std": 0.5}


def build(folder: Path, batch: int | str = FREE, *, input_name: str = "input") -> dict[str, Path]:
    """`input_name`: "input" in FaceFusion's copy, "input.1" in insightface's."""
    graph = Graph("arcface", seed=7)
    value = graph.conv(graph.input(input_name, [batch, 3, 112, 112]), 3, 8, 16, stride=16)
    flat = graph.reshape(graph.node("LeakyRelu", [value], alpha=0.2), [-1, 8 * 7 * 7])
    graph.output(graph.scale(graph.dense(flat, 392, 512), 1.5), "embedding", [batch, 512])
    return {"model": graph.save(folder)}
