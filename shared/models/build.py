"""The settings turned into a catalogue, a cache and a registry. The one module here that knows the settings."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from shared.models import catalog
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.choice import TenantModels
from shared.settings import ModelSettings
from shared.storage.open import open_store

if TYPE_CHECKING:
    from shared.context import Models
    from shared.models.registry import ModelRegistry
    from shared.tenancy.tenant import Policy


def chosen(settings: ModelSettings) -> Catalog:
    """The catalogue with every role for which a setting of that name chooses a model. Raises ConfigError."""
    default = catalog.default()
    roles = {spec.role for spec in default.models.values()}
    named = {item.name: str(getattr(settings, item.name)) for item in fields(settings) if item.name in roles}
    return default.choosing({role: name for role, name in named.items() if name})


def cache(settings: ModelSettings) -> ModelCache:
    bucket = open_store(settings.bucket) if settings.bucket else None
    return ModelCache(settings.cache, bucket, Path(settings.lock) if settings.lock else None)


def tenant_view(registry: Models, settings: ModelSettings, policy: Policy) -> Models:
    """The registry as jobs of a tenant with this policy may use it."""
    return TenantModels(registry, chosen(settings), policy)


def registry(settings: ModelSettings) -> ModelRegistry:
    """Imports numpy, not yet onnxruntime. Raises ConfigError."""
    from shared.models.registry import ModelRegistry
    from shared.vision.runtime import Runtime

    runtime = Runtime(
        settings.device,
        tensorrt=settings.tensorrt,
        engines=settings.cache / "engines",
        batch_elements=settings.batch_elements,
    )
    return ModelRegistry(chosen(settings), cache(settings), runtime)
