"""From a name to a loaded adapter: imported when first asked for, loaded once however many threads ask.

What a stage warms stays in memory; what jobs ask for beside it goes again when the budget needs its room. Two versions
of a model lie side by side; whoever is given the same bytes shares the memory, whichever way they came.
Knows the catalogue, the cache and the runtime that adapters are given; knows no adapter and no runtime by itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from shared.errors import ConfigError, ModelNotFoundError
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.residents import Meter, Residents, Slot, Unmetered
from shared.models.spec import ModelSpec
from shared.models.tally import STAGE, Tally
from shared.telemetry.spans import inside
from shared.vision.protocols import Adapter, ModelAssets

if TYPE_CHECKING:
    from shared.vision.runtime import Runtime

A = TypeVar("A")

log = logging.getLogger(__name__)


class ModelRegistry:
    """The `shared.context.Models` of one process. Any number of threads may use it."""

    def __init__(
        self,
        catalog: Catalog,
        cache: ModelCache,
        runtime: Runtime,
        *,
        budget: int = 0,
        meter: Meter | None = None,
        residents: Residents | None = None,
    ) -> None:
        """`budget`: bytes of model files in memory at once, 0 for no limit; `residents`: those of another registry."""
        self._catalog = catalog
        self._cache = cache
        self._runtime = runtime
        self._meter = meter or Unmetered()
        self.residents = residents or Residents(budget, self._meter)
        self._held: set[str] = set()
        self._holding = threading.Lock()

    def through(self, cache: ModelCache) -> ModelRegistry:
        """The same models in the versions that `cache` chooses, in the same memory and under the same budget."""
        return ModelRegistry(self._catalog, cache, self._runtime, meter=self._meter, residents=self.residents)

    def get(self, name: str, protocol: type[A]) -> A:
        """The adapter of the model, or of the role's model, called `name`.

        Raises ModelNotFoundError (no such model, or one that does not satisfy `protocol`), ModelError and its kin
        (the files cannot be had or loaded), ConfigError (the catalogue names no adapter). A failure is not kept.
        """
        spec = self._catalog.model(name)
        adapter = self._loaded(name)
        lacking = sorted(member for member in _members(protocol) if not hasattr(adapter, member))
        if lacking:
            raise ModelNotFoundError(f"{spec.name!r} is a {spec.role}, no {protocol.__name__}: no {lacking[0]}().")
        return cast("A", adapter)

    def chosen(self, role: str) -> str:
        """The name of the role's model; empty where none is chosen."""
        return self._catalog.roles.get(role, "")

    def digest(self, name: str) -> str:
        """Of the version that this node uses. Raises ModelNotFoundError."""
        return self._cache.digest(self._catalog.model(name))

    def permit(self, name: str, role: str) -> None:
        """Raises ModelNotFoundError for a model that does not exist in this role. To the process all are licensed."""
        spec = self._catalog.model(name)
        if spec.role != role:
            raise ModelNotFoundError(f"{spec.name!r} is a {spec.role}, no {role}.")

    def warm(self, *names: str) -> None:
        """Load these in parallel and run one sample through each. Raises the first error in the order of `names`."""
        if not names:
            return
        with ThreadPoolExecutor(len(names), thread_name_prefix="warm") as threads:
            for done in [threads.submit(copy_context().run, self._warm, name) for name in names]:
                done.result()

    def embedded(self, name: str) -> bool:
        """Whether it has no files. Raises ModelNotFoundError."""
        return not self._catalog.model(name).files

    def provider(self, name: str) -> str:
        """Where the model runs, which is loaded if need be: `cpu`, `cuda`, `tensorrt`. Raises as `get` does."""
        self._loaded(name)
        return self._slot(self._version(name)).provider

    def _warm(self, name: str) -> None:
        adapter = self._loaded(name)
        slot = self._slot(self._version(name))
        with slot.lock:
            slot.pinned = True
            if not slot.warm:
                with inside("warm model", wakeswap__model=name):
                    adapter.warm()
                slot.warm = True

    def _version(self, name: str) -> ModelSpec:
        return self._cache.chosen(self._catalog.model(name))

    def _slot(self, spec: ModelSpec) -> Slot:
        return self.residents.slot(spec.name, self._identity(spec))

    def _identity(self, spec: ModelSpec) -> str:
        """By the digests of its files and of all that it uses.

        Whoever names a digest has not got the bytes yet: a tenant's own version counts only once its files were had
        through this very cache, or its name would open the memory of another tenant who has them.
        """
        if spec.owner:
            with self._holding:
                if spec.folder not in self._held:
                    self._cache.ensure(spec)
                    self._cache.release(spec)
                    self._held.add(spec.folder)
        return " ".join([spec.digest, *(self._identity(self._version(name)) for name in spec.uses.values())])

    def _loaded(self, name: str) -> Adapter:
        spec = self._version(name)
        slot = self._slot(spec)
        with slot.lock:
            adapter = slot.adapter
            if adapter is None:
                with inside("load model", wakeswap__model=spec.name):
                    slot.adapter = adapter = self._load(spec, slot)
            else:
                self._meter.count("model_hits", model=spec.name)
                self.residents.settle(slot)
        self.residents.tell()
        return adapter

    def _load(self, spec: ModelSpec, slot: Slot) -> Adapter:
        started = time.monotonic()
        family, runtime = _family(spec), self._runtime.apart()
        used = {part: self._loaded(name) for part, name in spec.uses.items()}
        files = self._ensured(spec)
        with self.residents.taking(slot, sum(path.stat().st_size for path in files.values())):
            adapter = family(ModelAssets(spec.name, files, spec.parameters, used), runtime)
        slot.release, slot.provider = lambda: self._cache.release(spec), runtime.provider
        seconds = time.monotonic() - started
        self._meter.observe("model_load", seconds, model=spec.name, provider=slot.provider)
        facts = {"model": spec.name, "version": spec.digest[:16], "seconds": round(seconds, 3)}
        log.info("model loaded", extra={**facts, "provider": slot.provider})
        return adapter

    def _ensured(self, spec: ModelSpec) -> Mapping[str, Path]:
        """The model's files, fetched first if need be, and whether they had to be is counted."""
        tally = Tally()
        files = self._cache.ensure(spec, tally)
        tally.count(self._meter, STAGE)
        return files


def _family(spec: ModelSpec) -> Callable[[ModelAssets, Runtime], Adapter]:
    module, _, name = spec.adapter.partition(":")
    try:
        family: Callable[[ModelAssets, Runtime], Adapter] = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{spec.name}: the adapter {spec.adapter} cannot be imported: {error}") from error
    return family


def _members(protocol: type) -> set[str]:
    """Public names that a protocol and its bases declare."""
    declaring = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    return {name for base in declaring for name in vars(base) if not name.startswith("_")}
