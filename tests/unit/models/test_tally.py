"""What was in the cache and what was fetched, also across the two processes of a pod."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.models.progress import Step
from shared.models.tally import INIT, STAGE, Tally
from shared.serving.context import LazyModels
from shared.settings import ModelSettings
from shared.telemetry.metrics import PrometheusMetrics

ROOT = Path(__file__).parents[3]


def shown(metrics: PrometheusMetrics) -> set[str]:
    lines = metrics.render().decode().splitlines()
    return {
        line for line in lines if line.startswith(("wakeswap_cache_", "wakeswap_fetch_")) and "_created" not in line
    }


def test_a_model_was_there_or_came_or_came_from_another_process() -> None:
    steps: list[Step] = []
    told = Tally(steps.append)
    for step in (
        Step("a", "ready", "", 5, 5),
        Step("b", "fetch", "b.onnx", 3, 7),
        Step("b", "fetch", "b.onnx", 7, 7),
        Step("b", "fetch", "b.json", 1, 1),
        Step("b", "ready", "", 8, 8),
        Step("c", "wait"),
        Step("c", "ready", "", 9, 9),
        Step("d", "fetch", "d.onnx", 4, 9),  # and then it failed
    ):
        told(step)
    metrics = PrometheusMetrics()
    told.count(metrics, STAGE)
    assert len(steps) == 8
    assert shown(metrics) == {
        'wakeswap_cache_hits_total{model="a",where="stage"} 1.0',
        'wakeswap_cache_misses_total{model="b",where="stage"} 1.0',
        'wakeswap_cache_misses_total{model="c",where="stage"} 1.0',
        'wakeswap_fetch_bytes_total{model="b",where="stage"} 8.0',
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": 1}', '{"a": {"hit": true}}', '{"a": {"hit": true, "files": 3}}']
)
def test_what_cannot_be_read_counts_as_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "fetched.json").write_text(text)
    metrics = PrometheusMetrics()
    Tally.left(tmp_path / "fetched.json").count(metrics, INIT)
    Tally.left(tmp_path / "missing.json").count(metrics, INIT)
    assert shown(metrics) == set()


def test_the_function_counts_once_what_its_init_step_fetched(tmp_path: Path) -> None:
    report = tmp_path / "fetched.json"
    environ = {"WAKESWAP_MODEL_CACHE": str(ROOT / ".wakeswap/models"), "WAKESWAP_FETCH_REPORT": str(report)}
    command = [sys.executable, "model-warmup/main.py", "moderate"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environ}, check=True, capture_output=True)
    settings = ModelSettings(cache=ROOT / ".wakeswap/models", report=str(report))
    for expected in (True, False):
        metrics = PrometheusMetrics()
        LazyModels(settings, metrics).chosen("moderator")
        counted = 'wakeswap_cache_hits_total{model="open_nsfw",where="init"} 1.0' in shown(metrics)
        assert counted is expected
    assert not report.exists()
