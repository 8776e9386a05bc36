"""Which versions of the models the jobs of each tenant use, and the registry that gives them.

A tenant's own models come before the common ones, and its policy may name another version or channel than the
installation's. Where neither makes a difference it is the installation's registry itself, so that nothing is looked up
twice. Knows no settings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from shared.models.cache import ModelCache
from shared.models.owners import Choice, Owners, choice
from shared.models.registry import ModelRegistry
from shared.tenancy.tenant import Tenant


class Versions:
    """Of one process. Any number of threads may use it."""

    def __init__(
        self,
        registry: ModelRegistry,
        tag: str,
        owners: Callable[[], Owners | None],
        cache: Callable[[Choice], ModelCache] | None,
    ) -> None:
        """`tag`: the installation's; `owners` is asked once, when needed; `cache`: None where there is no bucket."""
        self._registry = registry
        self._tag = tag
        self._owners = owners
        self._cache = cache
        self._made: dict[Choice, ModelRegistry] = {Choice("", tag): registry}
        self._lock = threading.Lock()
        self._asked = False
        self._known: Owners | None = None

    def of(self, tenant: Tenant) -> ModelRegistry:
        if self._cache is None:
            return self._registry
        with self._lock:
            if not self._asked:
                self._known, self._asked = self._owners(), True
            chosen = choice(tenant, self._tag, self._known)
            if chosen not in self._made:
                self._made[chosen] = self._registry.through(self._cache(chosen))
            return self._made[chosen]
