"""A result says where its swapper ran, so that a GPU which was not there is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shared.models import build
from shared.models.cache import ModelCache
from shared.settings import ModelSettings
from tests.functions.chain import Chain
from tests.unit.vision.test_runtime import has_gpu

pytestmark = pytest.mark.slow


@pytest.mark.skipif(has_gpu(), reason="this machine has CUDA")
def test_mdl_06_a_preferred_gpu_that_is_missing_is_said_by_the_result(
    tmp_path: Path, model_cache: ModelCache, sample: Callable[[str], Path]
) -> None:
    registry = build.registry(replace(ModelSettings(), cache=model_cache.root, device="gpu-preferred"))
    result, _ = Chain(tmp_path, registry).run(sample("astronaut"), sample("astronaut"))
    assert result.provider == "cpu"
    assert {registry.provider(name) for name in ("detector", "landmarker", "mesh")} == {"cpu"}
