"""A node's folder: `--watch` fills it and heals it, `--wait` waits for it without a write."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.models.test_warmup import ROOT, bucket, environment

__all__ = ["bucket", "environment"]
MODEL = "open_nsfw"


@contextmanager
def started(environment: Mapping[str, str], *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "model-warmup/main.py", *arguments]
    env = {**environment, **more}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(done: Callable[[], bool], seconds: float = 30.0) -> None:
    ends = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < ends, "never came true"
        time.sleep(0.05)


def files(root: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in root.glob(f"{MODEL}-*/*")}


@pytest.mark.slow
def test_waiting_ends_when_the_watch_has_filled_the_folder(tmp_path: Path, environment: Mapping[str, str]) -> None:
    cache = tmp_path / "cache"
    with started(environment, "--wait", MODEL) as waiting:
        assert waiting.stderr
        assert waiting.stderr.readline() == f"model-warmup: waiting for {MODEL}\n"
        assert not cache.exists()
        with started(environment, "--watch", "--every", "0.2", MODEL) as watching:
            assert waiting.wait(60) == 0
            assert {mode & 0o444 for mode in files(cache).values()} == {0o444}  # Services run as another user
            for folder in cache.glob(f"{MODEL}-*"):
                assert folder.stat().st_mode & 0o555 == 0o555
                shutil.rmtree(folder)
            until(lambda: bool(files(cache)))
            watching.send_signal(signal.SIGTERM)
            assert watching.wait(20) == 0


@pytest.mark.slow
def test_a_watch_outlives_a_set_that_vanishes_at_any_moment(tmp_path: Path, environment: Mapping[str, str]) -> None:
    cache, moments = tmp_path / "cache", random.Random(7)
    with started(environment, "--watch", "--every", "0.02", MODEL) as watching:
        for _ in range(25):
            until(lambda: bool(files(cache)))
            time.sleep(moments.uniform(0, 0.15))
            for folder in cache.glob(f"{MODEL}-*"):
                shutil.rmtree(folder, ignore_errors=True)
            assert watching.poll() is None
        until(lambda: bool(files(cache)))
        assert watching.poll() is None


@pytest.mark.slow
def test_waiting_for_a_filled_folder_writes_nothing(tmp_path: Path, environment: Mapping[str, str]) -> None:
    with started(environment, MODEL) as filling:
        assert filling.wait(60) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}
    with started(environment, "--wait", MODEL) as waiting:
        assert waiting.wait(20) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")} == before


@pytest.mark.slow
def test_a_watch_outlives_a_bucket_that_fails(tmp_path: Path, environment: Mapping[str, str], bucket: Path) -> None:
    empty = tmp_path / "bucket"
    empty.mkdir()
    with started(environment, "--watch", "--every", "0.2", MODEL, WAKESWAP_MODEL_BUCKET=f"file:{empty}") as watching:
        until(lambda: watching.stderr is not None and "could not be fetched" in watching.stderr.readline())
        shutil.copytree(bucket / "models", tmp_path / "models")
        (tmp_path / "models").rename(empty / "models")
        until(lambda: bool(files(tmp_path / "cache")))
        assert watching.poll() is None
