"""What every test may use: the real models and the sample pictures, fetched once into a folder outside of git.

The folder is the working copy's own `.wakeswap/models`, so that a second run fetches nothing; parallel pytest
workers share it (the cache has one downloader at a time).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from shared.models import catalog
from shared.models.cache import ModelCache

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # how fast a machine is, and who else is on it, fails no test


@pytest.fixture(scope="session")
def model_cache() -> ModelCache:
    return ModelCache(ROOT / ".wakeswap" / "models")


@pytest.fixture(scope="session")
def model_files(model_cache: ModelCache) -> Callable[[str], Mapping[str, Path]]:
    """`model_files("centerface")["model"]`: the files of a catalogue model by part."""
    return lambda name: model_cache.ensure(catalog.default().model(name))


@pytest.fixture(scope="session")
def sample(model_cache: ModelCache) -> Callable[[str], Path]:
    """`sample("astronaut")`: path of a sample picture (astronaut, t1, hanks)."""

    def path(name: str) -> Path:
        for group in catalog.default().samples.values():
            if name in {file.part for file in group.files}:
                return model_cache.ensure(group)[name]
        raise LookupError(f"no sample picture is called {name}")

    return path
