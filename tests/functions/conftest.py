"""The product's own models, and a source that all stages know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from functions.detect import video
from shared.context import Models
from shared.models import build
from shared.models.cache import ModelCache
from shared.settings import ModelSettings
from shared.vision.recent import Recent


@pytest.fixture(scope="session")
def registry(model_cache: ModelCache) -> Models:
    for name in ("centerface", "face_mesh", "open_nsfw"):
        model_cache.ensure(build.chosen(ModelSettings()).model(name))
    return build.registry(replace(ModelSettings(), cache=model_cache.root))


@pytest.fixture
def astronaut(sample: Callable[[str], Path]) -> Path:
    return sample("astronaut")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs here have one number, by which detect keeps the sources of a video's segments."""
    monkeypatch.setattr(video, "_SOURCES", Recent(8))
