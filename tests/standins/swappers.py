"""Stand-ins for every learned swapper family, with the tables that the catalogue has for the real models.

Each network gives the target back with a bounded change that depends on the source and on the target. inswapper's
can be made as heavy as the real one, for the benchmarks on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shared.vision.protocols import Parameter
from tests.standins.graph import FREE, Graph

_CHANGE = 0.35
"""Largest change of a pixel, in parts of the output's range from black to white."""


@dataclass(frozen=True)
class Family:
    """One model as the catalogue describes it, and what its file must look like."""

    adapter: str
    parameters: Mapping[str, Parameter]
    source: tuple[int, ...] = (512,)
    """Shape of one row of the input `source`."""
    signed: bool = False
    """Output in -1..1 around grey rather than in 0..1."""
    mask: bool = False
    """A second output that nobody reads."""
    converter: bool = False
    half: bool = False
    order: tuple[str, str] = ("source", "target")


def _table(size: int, template: str, mean: float = 0.0, std: float = 1.0, **more: Parameter) -> dict[str, Parameter]:
    return {"size": size, "template": template, "mean": mean, "std": std, **more}


_IMAGENET: Mapping[str, Parameter] = {
    "mean_r": 0.485,
    "mean_g": 0.456,
    "mean_b": 0.406,
    "std_r": 0.229,
    "std_g": 0.224,
    "std_b": 0.225,
}
_SIMSWAP: Mapping[str, Parameter] = {"size": 256, "template": "arcface_112_v1", **_IMAGENET, "converter_norm": True}
_INSWAPPER = "shared.vision.swapper.inswapper:InSwapper"
_CONVERTED = "shared.vision.swapper.converted:ConvertedSwapper"
_EMBEDDING = "shared.vision.swapper.embedding:EmbeddingSwapper"
_IMAGE = "shared.vision.swapper.image_source:ImageSourceSwapper"

FAMILIES: Mapping[str, Family] = {
    "inswapper": Family(_INSWAPPER, _table(128, "arcface_128", latent="emap"), order=("target", "source")),
    "inswapper_fp16": Family(
        _INSWAPPER, _table(128, "arcface_128", latent="emap"), order=("target", "source"), half=True
    ),
    "simswap_256": Family(_CONVERTED, _SIMSWAP, converter=True),
    "simswap_512": Family(_CONVERTED, _table(512, "arcface_112_v1", converter_norm=True), converter=True),
    "ghost": Family(
        _CONVERTED,
        _table(256, "arcface_112_v1", 0.5, 0.5, unnorm=True, converter_norm=False),
        signed=True,
        converter=True,
    ),
    "hififace": Family(
        _CONVERTED, _table(256, "mtcnn_512", 0.5, 0.5, unnorm=True, converter_norm=True), signed=True, converter=True
    ),
    "hyperswap": Family(
        _EMBEDDING,
        _table(256, "arcface_128", 0.5, 0.5, unnorm=True, latent="normed"),
        signed=True,
        mask=True,
        half=True,
    ),
    "alphaface": Family(_EMBEDDING, _table(256, "arcface_128", latent="raw")),
    "blendswap": Family(
        _IMAGE, _table(256, "ffhq_512", source_size=112, source_template="arcface_112_v2"), source=(3, 112, 112)
    ),
    "uniface": Family(
        _IMAGE,
        _table(256, "ffhq_512", 0.5, 0.5, unnorm=True, source_size=256, source_template="ffhq_512"),
        source=(3, 256, 256),
        signed=True,
    ),
}


@dataclass(frozen=True)
class Build:
    """How a stand-in is made; the defaults give a few hundred kB and runs of milliseconds."""

    width: int = 8
    blocks: int = 1
    batch: int | str = FREE
    seed: int = 0


def build(name: str, folder: Path, how: Build | None = None) -> dict[str, Path]:
    """The files of the family by part: `model`, and `emap` or `converter` where it has one."""
    family, how = FAMILIES[name], how or Build()
    files = {}
    emap = orthogonal(how.seed) if "emap" in family.parameters.values() else None
    files["model"] = network(family, how, emap).save(folder, f"{name}.onnx")
    if emap is not None:
        files["emap"] = folder / f"{name}_emap.npy"
        np.save(files["emap"], emap)
    if family.converter:
        files["converter"] = converter(how.batch, how.seed + 1).save(folder, f"{name}_converter.onnx")
    return files


def network(family: Family, how: Build, emap: np.ndarray | None = None) -> Graph:
    """Target and source to picture: a residual network whose channels the source scales and shifts."""
    size, width = int(family.parameters["size"]), how.width
    graph = Graph("swapper", how.seed, half=family.half)
    shapes = {"source": [how.batch, *family.source], "target": [how.batch, 3, size, size]}
    values = {name: graph.input(name, shapes[name]) for name in family.order}
    style = _style(graph, values["source"], family.source)
    value = graph.node("LeakyRelu", [graph.conv(values["target"], 3, width, 4, stride=4)], alpha=0.2)
    for _ in range(how.blocks):
        value = _block(graph, value, style, width)
    picture = graph.enlarge(graph.node("Tanh", [graph.conv(value, width, 3, 3)]), 4)
    span = 2.0 if family.signed else 1.0
    whole = graph.node("Add", [values["target"], graph.scale(picture, _CHANGE * span)])
    graph.output(graph.clip(whole, -1.0 if family.signed else 0.0, 1.0), "output", [how.batch, 3, size, size])
    if family.mask:
        graph.output(
            graph.node("Sigmoid", [graph.enlarge(graph.conv(value, width, 1, 3), 4)]),
            "mask",
            [how.batch, 1, size, size],
        )
    if emap is not None:
        graph.constant(emap, name="emap")  # insightface reads the last one, which no node does
    return graph


def converter(batch: int | str = FREE, seed: int = 1) -> Graph:
    """An embedding in one recogniser's space to one in another's."""
    graph = Graph("converter", seed)
    value = graph.dense(graph.input("input", [batch, 512]), 512, 64)
    graph.output(graph.dense(graph.node("LeakyRelu", [value], alpha=0.2), 64, 512), "output", [batch, 512])
    return graph


def orthogonal(seed: int) -> np.ndarray:
    """float32 [512, 512]: a mirror with its rows in another order, which no more equals its transpose."""
    random = np.random.default_rng(seed)
    normal = random.standard_normal(512)
    mirror = np.eye(512) - 2 * np.outer(normal, normal) / (normal @ normal)
    return mirror[random.permutation(512)].astype(np.float32)


def _style(graph: Graph, source: str, shape: tuple[int, ...]) -> str:
    """[n, 64], of either kind of source."""
    if len(shape) == 1:
        return graph.dense(source, shape[0], 64)
    pooled = graph.node("GlobalAveragePool", [graph.node("Tanh", [graph.conv(source, 3, 64, 8, stride=8)])])
    return graph.reshape(pooled, [-1, 64])


def _block(graph: Graph, value: str, style: str, width: int) -> str:
    changed = graph.conv(value, width, width, 3)
    gain = graph.reshape(graph.dense(style, 64, width), [-1, width, 1, 1])
    shift = graph.reshape(graph.dense(style, 64, width), [-1, width, 1, 1])
    changed = graph.node("Add", [graph.node("Mul", [changed, graph.scale(gain, 0.5, 1.0)]), shift])
    return graph.node("Add", [value, graph.node("Relu", [changed])])
