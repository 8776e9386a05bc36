"""From a name to a loaded adapter: imported when first asked for, loaded once however many threads ask.

What a stage warms stays in memory; what jobs ask for beside it goes again when the budget needs its room.
Knows the catalogue, the cache and the runtime that adapters are given; knows no adapter and no runtime by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast

from shared.errors import ConfigError, ModelNotFoundError
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.residents import Meter, Residents, Slot, Unmetered
from shared.models.spec import ModelSpec
from shared.vision.protocols import Adapter, ModelAssets

if TYPE_CHECKING:
    from shared.vision.runtime import Runtime

A = TypeVar("A")

log = logging.getLogger(__name__)


class ModelRegistry:
    """The `shared.context.Models` of one process. Any number of threads may use it."""

    def __init__(
        self, catalog: Catalog, cache: ModelCache, runtime: Runtime, *, budget: int = 0, meter: Meter | None = None
    ) -> None:
        """`budget`: bytes of model files in memory at once, 0 for no limit."""
        self._catalog = catalog
        self._cache = cache
        self._runtime = runtime
        self._meter = meter or Unmetered()
        self.residents = Residents(budget, self._meter, lambda name: cache.release(catalog.model(name)))

    def get(self, name: str, protocol: type[A]) -> A:
        """The adapter of the model, or of the role's model, called `name`.

        Raises ModelNotFoundError (no such model, or one that does not satisfy `protocol`), ModelError and its kin
        (the files cannot be had or loaded), ConfigError (the catalogue names no adapter). A failure is not kept.
        """
        spec = self._catalog.model(name)
        adapter = self._loaded(spec)
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
        specs = [self._catalog.model(name) for name in names]
        if not specs:
            return
        with ThreadPoolExecutor(len(specs), thread_name_prefix="warm") as threads:
            for done in [threads.submit(self._warm, spec) for spec in specs]:
                done.result()

    def _warm(self, spec: ModelSpec) -> None:
        adapter = self._loaded(spec)
        slot = self.residents.slot(spec.name)
        with slot.lock:
            slot.pinned = True
            if not slot.warm:
                adapter.warm()
                slot.warm = True

    def _loaded(self, spec: ModelSpec) -> Adapter:
        slot = self.residents.slot(spec.name)
        with slot.lock:
            adapter = slot.adapter
            if adapter is None:
                slot.adapter = adapter = self._load(spec, slot)
            else:
                self._meter.count("model_hits", model=spec.name)
                self.residents.settle(slot)
        self.residents.tell()
        return adapter

    def _load(self, spec: ModelSpec, slot: Slot) -> Adapter:
        started = time.monotonic()
        family = _family(spec)
        used = {part: self._loaded(self._catalog.model(name)) for part, name in spec.uses.items()}
        files = self._cache.ensure(spec)
        with self.residents.taking(slot, sum(path.stat().st_size for path in files.values())):
            adapter = family(ModelAssets(spec.name, files, spec.parameters, used), self._runtime)
        seconds = time.monotonic() - started
        self._meter.observe("model_load", seconds, model=spec.name)
        log.info("model loaded", extra={"model": spec.name, "seconds": round(seconds, 3)})
        return adapter


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
