"""A node's folder: `--watch` fills it and heals it, `--wait` waits for it without a write."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import onnx
import pytest

from infra.models.publishing import Publisher
from shared.models import catalog
from shared.models.cache import ModelCache
from shared.models.progress import silent
from shared.storage.local import LocalStore
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


@pytest.mark.slow
def test_a_node_has_every_tenants_own_versions_and_their_graphs(
    tmp_path: Path, environment: Mapping[str, str], model_files: Callable[[str], Mapping[str, Path]]
) -> None:
    """A function cannot fetch into the node's folder. What is broken for one tenant harms no other."""
    store = LocalStore(tmp_path / "own")
    for owner, version, channel in (("", "1", "stable"), ("", "2", "beta"), ("acme", "3", "stable"), ("bad", "4", "")):
        model = onnx.load(model_files("face_mesh")["model"])
        model.doc_string = version
        onnx.save(model, tmp_path / "net.onnx")
        publisher = Publisher(store, owner)
        made = publisher.push("face_mesh", version, {"model": tmp_path / "net.onnx"}, silent)
        if channel:
            publisher.promote("face_mesh", version, channel)
    store.delete(f"models/tenants/bad/sha256/{made.files['model'].sha256}")
    tenants = {
        "bad": {"policy": {"model_tag": "4"}},
        "acme": {},
        "early": {"policy": {"model_tag": "beta"}},
        "none": {},
    }
    settings = {
        "WAKESWAP_MODEL_BUCKET": f"file:{store.root}",
        "WAKESWAP_MODEL_TAG": "stable",
        "WAKESWAP_TENANTS": json.dumps(tenants),
        "WAKESWAP_DETECTOR": "",
    }
    cache = tmp_path / "cache"
    with started(environment, "--watch", "--every", "0.2", "face_mesh", **settings) as watching:
        assert watching.stderr is not None
        until(lambda: len(list(cache.glob("derived-*"))) == 3)
        assert next(line for line in watching.stderr if line.startswith("models of bad, 4: model_not_found"))
        assert watching.poll() is None
    assert sorted(path.name.rpartition("-")[0] for path in cache.glob("*face_mesh-*")) == [
        "acme~face_mesh",
        "face_mesh",
        "face_mesh",
    ]
    assert json.loads((cache / ".tags/.owners.json").read_text()) == {"acme": ["face_mesh"], "bad": ["face_mesh"]}
    assert len(store.list("models/tenants/acme/derived/").objects) == 1
    assert len(store.list("models/derived/").objects) == 2
    view = ModelCache(cache, LocalStore(tmp_path / "empty"), tag="stable", tenant="acme")
    found = view.find(catalog.default().model("face_mesh"))
    assert found is not None
    assert onnx.load(found["model"]).doc_string == "3", "a function needs no bucket"
