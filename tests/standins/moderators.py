"""A stand-in moderator: the brighter a picture, the less safe for work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shared.vision.protocols import Parameter
from tests.standins.graph import FREE, Graph
from tests.standins.tables import table

ADAPTER = "shared.vision.moderator.classifier:Classifier"
PARAMETERS: Mapping[str, Parameter] = {"size": 32, "mean": 0.5, "std": 0.5, "unsafe": "1"}


def build(folder: Path, steepness: float = 20.0) -> dict[str, Path]:
    """Logits 0 and `steepness` times the mean of what comes in: 0.5 for middle grey, 1 for white."""
    graph = Graph("brightness")
    value = graph.input("pixels", [FREE, 3, 32, 32])
    mean = graph.node("ReduceMean", [value, graph.constant([1, 2, 3], "int64")], keepdims=0)
    column = graph.reshape(mean, [-1, 1])
    weights = graph.constant([[0.0, steepness]])
    graph.output(graph.node("MatMul", [column, weights]), "logits", [FREE, 2])
    return {"model": graph.save(folder)}


def catalogue(folder: Path, name: str = "brightness") -> Path:
    """A folder with one table, as an operator would add it."""
    tables = folder / "catalogue"
    tables.mkdir(parents=True)
    text = table(name, "moderator", ADAPTER, build(folder), PARAMETERS)
    (tables / "moderators_of_our_own.toml").write_text(text)
    return tables
