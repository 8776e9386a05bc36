"""Filling a node's cache: the files of its models, in the versions that each tenant uses, and what functions would
otherwise make of them at their first wake.

What the init step runs once and a node's watch over and over. Says on its log what it could not do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from shared.errors import ConfigError, ModelNotFoundError, WakeswapError
from shared.models import build, owners
from shared.models.cache import TAGS, ModelCache
from shared.models.catalog import Catalog
from shared.models.owners import Choice, Owners
from shared.models.progress import Progress
from shared.models.spec import ModelSpec
from shared.settings import ModelSettings
from shared.storage.open import open_store
from shared.tenancy.tenant import Tenant

log = logging.getLogger(__name__)

Specs = Iterable[ModelSpec]


class Filler:
    """Of one process: what the bucket refused once is not asked for again."""

    def __init__(self, settings: ModelSettings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog
        self._artefacts = build.shared(settings, put=True)

    def fill(self, cache: ModelCache, specs: Specs, progress: Progress) -> None:
        """Everybody's versions. Raises ModelError and its kin when a file cannot be had."""
        self._prepare(cache, {spec.name: cache.ensure(spec, progress) for spec in specs})

    def look(self) -> Owners:
        """Who has models of its own in the bucket, noted for this node's functions. Raises ModelError and its kin."""
        if not self._settings.bucket:
            return {}
        found = owners.look(open_store(self._settings.bucket))
        owners.note(self._settings.cache / TAGS, found)
        return found

    def fill_for(self, tenants: Iterable[Tenant], specs: Specs, progress: Progress) -> None:
        """The versions that only some use, for functions that cannot fetch by themselves.

        These models, and all that a tenant has of its own. What cannot be had for one tenant keeps nobody else from
        theirs. Raises ModelError and its kin when the bucket cannot be listed.
        """
        known = self.look()
        common = Choice("", self._settings.tag)
        for chosen in sorted({owners.choice(tenant, self._settings.tag, known) for tenant in tenants} - {common}):
            try:
                cache = build.cache(self._settings, refresh=True, tenant=chosen.owner, tag=chosen.tag)
                self.fill(cache, self._with_own(specs, known.get(chosen.owner, ())), progress)
            except WakeswapError as error:
                whose = f"{chosen.owner or 'everybody'}, {chosen.tag}"
                log.warning("models of %s: %s: %s", whose, error.code, error.detail)

    def _with_own(self, specs: Specs, names: Iterable[str]) -> list[ModelSpec]:
        own = [part for name in names if name in self._catalog.models for part in self._catalog.closure(name)]
        return list({spec.name: spec for spec in [*specs, *own]}.values())

    def _prepare(self, cache: ModelCache, found: Mapping[str, Mapping[str, Path]]) -> None:
        try:
            for files in found.values():
                build.prepare(self._settings, files, self._artefacts)
            build.prepare_engines(self._settings, cache, found, self._artefacts)
        except WakeswapError as error:  # the function will say it again, if it matters there
            log.warning("not prepared: %s: %s", error.code, error.detail)


def asked_for(catalog: Catalog, stage: str, names: Iterable[str]) -> list[ModelSpec]:
    """Of these models and roles those that jobs have the stage load, with what they use.

    Raises ConfigError for a model that does not exist, or that jobs do not ask for.
    """
    try:
        closures = [catalog.closure(name) for name in names]
    except ModelNotFoundError as error:
        raise ConfigError(error.detail) from error
    roles = {role for asked in catalog.asked.values() for role in asked}
    if strange := [closure[-1] for closure in closures if closure[-1].role not in roles]:
        raise ConfigError(f"{strange[0].name!r} is a {strange[0].role}; jobs ask for {', '.join(sorted(roles))}.")
    return [part for closure in closures if closure[-1].role in catalog.asked.get(stage, ()) for part in closure]
