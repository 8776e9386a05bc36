"""The settings turned into a catalogue, a cache and a registry. The one module here that knows the settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from shared.models import catalog, owners
from shared.models.cache import TAGS, ModelCache
from shared.models.catalog import Catalog
from shared.models.choice import TenantModels
from shared.models.derived import DerivedGraphs
from shared.models.engines import SETTLED, KeptEngines
from shared.models.sharing import SharedArtefacts
from shared.settings import ModelSettings
from shared.storage.open import open_store
from shared.vision.graphs import Facts, engine_facts, facts, tensorrt_version

if TYPE_CHECKING:
    from shared.context import Models
    from shared.models.registry import ModelRegistry
    from shared.models.residents import Meter
    from shared.models.versions import Versions
    from shared.tenancy.tenant import Policy
    from shared.vision.runtime import Runtime

READER = "reader"
NONE = "none"
"""As the setting's value: no such model at all. Moderation has a setting of its own for that."""


def chosen(settings: ModelSettings) -> Catalog:
    """The catalogue with every role for which a setting of that name chooses a model. Raises ConfigError.

    Without moderation there is neither moderator nor reader: so no stage needs, fetches or loads one.
    """
    known = catalog.extended(settings.catalogue) if settings.catalogue else catalog.default()
    roles = {spec.role for spec in known.models.values()}
    named = {item.name: str(getattr(settings, item.name)) for item in fields(settings) if item.name in roles}
    without = {READER} if settings.reader == NONE else set()
    without |= {"moderator", READER} if settings.moderation == "off" else set()
    found = known.choosing({role: name for role, name in named.items() if name and role not in without})
    return found.without(without)


def cache(settings: ModelSettings, *, refresh: bool = False, tenant: str = "", tag: str = "") -> ModelCache:
    """`refresh`: ask the bucket what a channel stands for now; `tenant`: whose own models come before the common ones;
    `tag`: version or channel that comes before the installation's."""
    bucket = open_store(settings.bucket) if settings.bucket else None
    lock = Path(settings.lock) if settings.lock else None
    tag = tag or settings.tag
    return ModelCache(settings.cache, bucket, lock, tag=tag, otherwise=settings.tag, tenant=tenant, refresh=refresh)


def versions(registry: ModelRegistry, settings: ModelSettings) -> Versions:
    """The registry as the jobs of each tenant use it. Without a bucket there is one version, for all."""
    from shared.models.versions import Versions  # with the registry, which needs numpy

    def of_choice(choice: owners.Choice) -> ModelCache:
        return cache(settings, tenant=choice.owner, tag=choice.tag)

    def noted() -> owners.Owners | None:
        return owners.noted(settings.cache / TAGS)

    return Versions(registry, settings.tag, noted, of_choice if settings.bucket else None)


def tenant_view(models: Models, settings: ModelSettings, policy: Policy) -> Models:
    """The models as jobs of a tenant with this policy may use them."""
    return TenantModels(models, chosen(settings), policy)


def registry(settings: ModelSettings, meter: Meter | None = None) -> ModelRegistry:
    """Imports numpy, not yet onnxruntime. Raises ConfigError."""
    from shared.models.registry import ModelRegistry

    budget = settings.budget_mb * 1_000_000
    return ModelRegistry(chosen(settings), cache(settings), _runtime(settings), budget=budget, meter=meter)


def shared(settings: ModelSettings, *, put: bool) -> SharedArtefacts | None:
    """What the bucket has of graphs and engines; one object a process, which asks no second time what was refused.

    `put`: add to it, where the setting does not say otherwise. None: there is no bucket, or it is left alone.
    """
    if not settings.bucket or settings.derived == "local":
        return None
    return SharedArtefacts(open_store(settings.bucket), put=put and settings.derived == "share")


def prepare(settings: ModelSettings, files: Mapping[str, Path], artefacts: SharedArtefacts | None = None) -> None:
    """Have the optimised graphs of a model in the cache, so that no function has to make them.

    Those that are there cost a stat and a small read a file; the bucket is asked for the others, and onnxruntime is
    imported only to make one. Nothing is done where none would be kept. Raises ModelError and its kin.
    """
    known = _facts(settings)
    if known is None:
        return
    graphs = DerivedGraphs(settings.cache, shared=artefacts)
    for path in files.values():
        if graphs.worth(path) and graphs.find(path, known) is None:
            _runtime(settings).session(path)
        graphs.share(path, known)


def prepare_engines(
    settings: ModelSettings,
    cache: ModelCache,
    models: Mapping[str, Mapping[str, Path]],
    artefacts: SharedArtefacts | None = None,
) -> None:
    """The same of TensorRT's engines, by a sample through each model that has none.

    `models`: files by part, by the model's name, in the versions of `cache`. Raises ModelError and its kin.
    """
    known = engine_facts(_version("onnxruntime-gpu"), tensorrt_version()) if settings.tensorrt else None
    if known is None:
        return
    engines = KeptEngines(settings.cache, artefacts)
    graphs = {name: [path for path in files.values() if path.suffix == ".onnx"] for name, files in models.items()}
    lacking = [name for name, paths in graphs.items() if not all(engines.made(path, known) for path in paths)]
    if lacking:
        registry(settings).through(cache).warm(*lacking)
    for name, paths in graphs.items():
        for path in paths:
            engines.share(path, known, settled=0.0 if name in lacking else SETTLED)


def _facts(settings: ModelSettings) -> Facts | None:
    provider = {"cpu": "CPUExecutionProvider", "gpu": "CUDAExecutionProvider"}.get(settings.device, "")
    version = _version("onnxruntime" if settings.device == "cpu" else "onnxruntime-gpu")
    return None if settings.graph == "plain" or settings.tensorrt or not version else facts(version, provider)


def _version(package: str) -> str:
    """Empty for one that is not installed. By the name of the folder that every installer leaves beside a package:
    importlib.metadata would cost each init step 20 ms."""
    pattern = f"{package.replace('-', '_')}-*.dist-info"
    found = (path for folder in sys.path for path in Path(folder or ".").glob(pattern))
    return next((path.stem.rpartition("-")[2] for path in found), "")


def _runtime(settings: ModelSettings) -> Runtime:
    from shared.vision.runtime import Runtime

    artefacts = shared(settings, put=False)
    return Runtime(
        settings.device,
        tensorrt=settings.tensorrt,
        engines=KeptEngines(settings.cache, artefacts),
        batch_elements=settings.batch_elements,
        graphs=DerivedGraphs(settings.cache, shared=artefacts) if settings.graph == "mapped" else None,
    )
