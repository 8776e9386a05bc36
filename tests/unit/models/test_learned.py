"""Every learned model of the catalogue the whole way: a stand-in of its files, frozen to one sample as most are
published, fetched, given a free batch, loaded with its table by its adapter, and run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shared.models import catalog, manifest
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.registry import ModelRegistry
from shared.models.spec import ModelSpec
from shared.vision.runtime import Runtime
from tests.standins import embedders, enhancers, maskers, swappers, upscalers
from tests.standins.detectors import fan

pytestmark = pytest.mark.slow

KNOWN = catalog.default()
SWAPPERS = {
    "inswapper_128": "inswapper",
    "inswapper_128_fp16": "inswapper_fp16",
    "hyperswap_1a_256": "hyperswap",
    "hyperswap_1b_256": "hyperswap",
    "hyperswap_1c_256": "hyperswap",
    "ghost_1_256": "ghost",
    "ghost_2_256": "ghost",
    "ghost_3_256": "ghost",
    "simswap_256": "simswap_256",
    "simswap_unofficial_512": "simswap_512",
    "hififace_unofficial_256": "hififace",
    "alphaface_256": "alphaface",
    "blendswap_256": "blendswap",
    "uniface_256": "uniface",
}
FREED = [
    spec for spec in KNOWN.models.values() if any(file.convert.endswith("free_batch:convert") for file in spec.files)
]


def standin(spec: ModelSpec, folder: Path) -> Mapping[str, Path]:
    """Files by part with the interface of the published ones, for one sample."""
    if spec.role == "swapper":
        return swappers.build(SWAPPERS[spec.name], folder, swappers.Build(batch=1))
    if spec.role == "embedder":
        return embedders.build(folder, batch=1)
    if spec.role == "enhancer":
        return enhancers.build(folder, spec.parameters, batch=1)
    if spec.role == "upscaler":
        return upscalers.build(folder, spec.parameters, batch=1)
    if spec.role == "refiner":
        return {"model": fan(folder, np.zeros((68, 2)), 0.9, (1, 3, 256, 256))}
    return (maskers.xseg if spec.name.startswith("xseg") else maskers.bisenet)(folder, batch=1)


def local(spec: ModelSpec, folder: Path) -> ModelSpec:
    """The catalogue's own table with a stand-in's files for the published ones."""
    made = standin(spec, folder)
    files = []
    for file in spec.files:
        if file.origin:
            files.append(file)
        else:
            source = (f"file:{made[file.part]}",)
            files.append(replace(file, sources=source, source_sha256="", source_size=0))
    return replace(spec, files=tuple(files))


def test_every_learned_swapper_has_a_stand_in() -> None:
    assert {spec.name for spec in FREED if spec.role == "swapper"} == SWAPPERS.keys()


@pytest.mark.parametrize("spec", FREED, ids=lambda spec: spec.name)
def test_fetched_freed_loaded_and_run(tmp_path: Path, spec: ModelSpec) -> None:
    used = [KNOWN.model(name) for name in spec.uses.values()]
    models = {item.name: local(item, tmp_path / item.name) for item in [*used, spec]}
    cache = ModelCache(tmp_path / "cache")
    ModelRegistry(Catalog(models, {}, {}, {}), cache, Runtime()).warm(spec.name)
    entries = manifest.read(tmp_path / "cache" / models[spec.name].folder)
    assert entries is not None
    assert {entry.note for entry in entries.values()} == {""}, "the batch is free"
    for file in models[spec.name].files:
        if not file.origin:
            session = Runtime().session(cache.ensure(models[spec.name])[file.part])
            assert {port.shape[0] for name, port in session.inputs.items() if name != "weight"} == {"N"}


@pytest.mark.parametrize(("name", "family"), SWAPPERS.items())
def test_the_tables_are_those_that_the_families_are_tested_with(name: str, family: str) -> None:
    spec, tested = KNOWN.model(name), swappers.FAMILIES[family]
    defaults = {"unnorm": False, "renorm": True}
    assert spec.adapter == tested.adapter
    assert {**defaults, **spec.parameters} == {**defaults, **tested.parameters}
