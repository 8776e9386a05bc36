"""The product's own models, and a source that all stages know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shared.context import Models
from shared.models import build
from shared.models.cache import ModelCache
from shared.settings import ModelSettings


@pytest.fixture(scope="session")
def registry(model_cache: ModelCache) -> Models:
    for name in ("centerface", "face_mesh", "open_nsfw"):
        model_cache.ensure(build.chosen(ModelSettings()).model(name))
    return build.registry(replace(ModelSettings(), cache=model_cache.root))


@pytest.fixture
def astronaut(sample: Callable[[str], Path]) -> Path:
    return sample("astronaut")
