"""The cache in one process: order of places, wrong content by kind, healing, read-only folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.errors import (
    CacheFullError,
    ModelAccessDeniedError,
    ModelError,
    ModelIncompatibleError,
    ModelIncompleteError,
    ModelInvalidError,
    ModelNotFoundError,
)
from shared.models.cache import ModelCache
from shared.models.progress import Step
from shared.models.spec import FileSet
from shared.storage.local import LocalStore
from tests.unit.models.places import DATA, digest, file_set, file_spec, network, serving

GOOD = network()
ROOT = Path(__file__).resolve().parents[3]


def at(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return f"file:{path}"


def left_in(root: Path) -> list[str]:
    """Everything below a cache folder but its lock files."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if ".locks" not in path.parts)


def test_a_set_is_fetched_once_and_found_again(tmp_path: Path) -> None:
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD), name="m.onnx"))
    steps: list[Step] = []
    cache = ModelCache(tmp_path / "cache")
    path = cache.ensure(files, steps.append)["model"]
    assert path.read_bytes() == GOOD
    assert [step.action for step in steps] == ["fetch", "fetch", "ready"]
    (tmp_path / "s").unlink()
    assert ModelCache(tmp_path / "cache").ensure(files)["model"] == path
    assert left_in(tmp_path / "cache") == [
        ".tmp",
        files.folder,
        f"{files.folder}/m.onnx",
        f"{files.folder}/manifest.json",
    ]


def test_a_model_without_files_needs_no_cache(tmp_path: Path) -> None:
    assert ModelCache(tmp_path / "none").ensure(file_set()) == {}
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("lfs_pointer", (DATA / "lfs_pointer.txt").read_bytes()),
        ("html", (DATA / "html_page.txt").read_bytes()),
        ("xml", (DATA / "s3_error.txt").read_bytes()),
        ("empty", b""),
        ("truncated", GOOD[: len(GOOD) // 2]),
        ("oversized", GOOD + b"\0"),
        ("wrong_digest", GOOD[:-1] + b"\xff"),
    ],
)
def test_mdl_01_wrong_content_is_named_and_not_kept(tmp_path: Path, kind: str, data: bytes) -> None:
    bad, good = at(tmp_path / "bad", data), at(tmp_path / "good", GOOD)
    cache = ModelCache(tmp_path / "cache")
    with pytest.raises(ModelInvalidError) as caught:
        cache.ensure(file_set(file_spec(GOOD, bad, name="m.onnx")))
    assert caught.value.status == 503
    assert caught.value.context["kind"] == kind
    assert left_in(tmp_path / "cache") == [".tmp"]
    healed = cache.ensure(file_set(file_spec(GOOD, bad, good, name="m.onnx")))
    assert healed["model"].read_bytes() == GOOD


def test_the_bucket_comes_before_the_sources(tmp_path: Path) -> None:
    bucket = LocalStore(tmp_path / "bucket")
    bucket.put(f"models/sha256/{digest(GOOD)}", GOOD)
    with serving(GOOD) as server:
        files = file_set(file_spec(GOOD, server.url))
        assert ModelCache(tmp_path / "one", bucket).ensure(files)["model"].read_bytes() == GOOD
        assert server.requests == []
        bucket.put(f"models/sha256/{digest(GOOD)}", b"rotten")
        assert ModelCache(tmp_path / "two", bucket).ensure(files)["model"].read_bytes() == GOOD
        assert len(server.requests) == 1


def test_what_the_bucket_lacks_is_not_pushed(tmp_path: Path) -> None:
    bucket = LocalStore(tmp_path / "bucket")
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD)))
    ModelCache(tmp_path / "cache", bucket).ensure(files)
    assert bucket.list("models/").objects == ()


def test_all_places_are_told_and_the_passing_one_wins(tmp_path: Path) -> None:
    bad = at(tmp_path / "bad", b"")
    with serving(GOOD) as server:
        server.script = [403]
        files = file_set(file_spec(GOOD, bad, server.url, f"file:{tmp_path}/none"))
        with pytest.raises(ModelAccessDeniedError) as caught:
            ModelCache(tmp_path / "cache").ensure(files)
        assert "an empty file" in caught.value.detail
        server.script = [400]
        with pytest.raises(ModelError) as passing:
            ModelCache(tmp_path / "cache").ensure(files)
        assert passing.value.code == "model_unavailable"
    assert str(tmp_path) not in caught.value.detail


def test_no_source_at_all_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="has no source"):
        ModelCache(tmp_path / "cache").ensure(file_set(file_spec(GOOD)))


def test_one_bad_file_leaves_none_of_the_set(tmp_path: Path) -> None:
    good, bad = at(tmp_path / "good", GOOD), at(tmp_path / "bad", b"")
    files = file_set(file_spec(GOOD, good), file_spec(b"weights", bad, part="weights", name="weights.bin"))
    with pytest.raises(ModelInvalidError):
        ModelCache(tmp_path / "cache").ensure(files)
    assert left_in(tmp_path / "cache") == [".tmp"]


@pytest.mark.parametrize("damage", ["shorter", "gone", "manifest"])
def test_a_damaged_set_is_fetched_again(tmp_path: Path, damage: str) -> None:
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD)))
    cache = ModelCache(tmp_path / "cache")
    path = cache.ensure(files)["model"]
    if damage == "shorter":
        path.write_bytes(GOOD[:7])
    elif damage == "gone":
        path.unlink()
    else:
        (path.parent / "manifest.json").write_bytes(b"\xff{")
    assert cache.find(files) is None
    assert cache.ensure(files)["model"].read_bytes() == GOOD
    assert left_in(tmp_path / "cache") == [
        ".tmp",
        files.folder,
        f"{files.folder}/manifest.json",
        f"{files.folder}/model.bin",
    ]


def test_a_hit_reads_no_model_byte(tmp_path: Path) -> None:
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD)))
    cache = ModelCache(tmp_path / "cache")
    path = cache.ensure(files)["model"]
    before = path.stat()
    path.write_bytes(bytes(len(GOOD)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # only reading it would tell
    assert cache.ensure(files)["model"] == path
    assert path.read_bytes() == bytes(len(GOOD))


def test_a_hit_costs_under_5_ms(tmp_path: Path) -> None:
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD)))
    ModelCache(tmp_path / "cache").ensure(files)
    cache, times = ModelCache(tmp_path / "cache"), []
    for _ in range(20):
        started = time.perf_counter()
        cache.ensure(files)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.005
    assert min(times[1:]) <= times[0] < 0.05, "the first is no other kind of hit"


def test_a_file_changed_after_it_was_verified_is_found_and_healed(tmp_path: Path) -> None:
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD)))
    cache = ModelCache(tmp_path / "cache")
    path = cache.ensure(files)["model"]
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"rotten")
    assert cache.find(files) is None
    assert cache.ensure(files)["model"].read_bytes() == GOOD


def test_a_file_that_was_only_touched_is_hashed_once_and_kept(tmp_path: Path) -> None:
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD)))
    cache = ModelCache(tmp_path / "cache")
    path = cache.ensure(files)["model"]
    (tmp_path / "s").unlink()  # nowhere to fetch it from
    inode = path.stat().st_ino
    os.utime(path, (1, 1))
    assert cache.ensure(files)["model"].stat().st_ino == inode
    assert cache.find(files) is not None
    whole = path.stat().st_mtime_ns
    os.utime(path, ns=(whole, whole // 10**9 * 10**9))  # as an image or an archive keeps it
    assert cache.find(files) is not None


def test_a_hit_imports_nothing_heavy(tmp_path: Path) -> None:
    source = at(tmp_path / "s", GOOD)
    ModelCache(tmp_path / "cache").ensure(file_set(file_spec(GOOD, source)))
    code = "import sys; from tests.unit.models.fetch_one import main; main(*sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", code, str(tmp_path / "cache"), source, str(len(GOOD)), digest(GOOD)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    assert said[0] == digest(GOOD)
    heavy = {"numpy", "onnx", "tflite", "tenacity", "rich", "boto3", "urllib.request", "zipfile", "subprocess"}
    assert heavy & set(said) == set()


def test_leftovers_of_other_sets_are_swept(tmp_path: Path) -> None:
    dead = tmp_path / "cache" / ".tmp" / "old-0123" / "unique"
    dead.mkdir(parents=True)
    (dead / "part").write_bytes(b"x" * 1000)
    ModelCache(tmp_path / "cache").ensure(file_set(file_spec(GOOD, at(tmp_path / "s", GOOD))))
    assert not dead.parent.exists()


def test_mdl_03_too_little_space_is_known_before_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free._replace(free=len(GOOD) - 1))
    with serving(GOOD) as server:
        with pytest.raises(CacheFullError) as caught:
            ModelCache(tmp_path / "cache").ensure(file_set(file_spec(GOOD, server.url)))
        assert server.requests == []
    assert caught.value.context == {"needed": len(GOOD), "free": len(GOOD) - 1}
    assert (caught.value.status, caught.value.code) == (503, "cache_full")


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (network(opset=99), ModelIncompatibleError, "opset 99"),
        (network(ir=99), ModelIncompatibleError, "IR 99"),
        (network(location="weights.bin"), ModelIncompleteError, "weights.bin"),
        (network(location="../../../../etc/passwd"), ModelInvalidError, "outside its own folder"),
        (network(location="/etc/passwd"), ModelInvalidError, "outside its own folder"),
    ],
    ids=["opset", "ir", "missing weights", "traversal", "absolute"],
)
def test_mdl_05_what_could_never_load_is_refused_when_fetched(
    tmp_path: Path, data: bytes, error: type[ModelError], said: str
) -> None:
    files = file_set(file_spec(data, at(tmp_path / "s", data), name="m.onnx"))
    with pytest.raises(error, match=said) as caught:
        ModelCache(tmp_path / "cache").ensure(files)
    assert caught.value.status == 503
    assert left_in(tmp_path / "cache") == [".tmp"]


def test_mdl_05_weights_that_are_listed_lie_beside_the_graph(tmp_path: Path) -> None:
    graph, weights = network(location="weights.bin"), bytes(1024)
    files = file_set(
        file_spec(graph, at(tmp_path / "g", graph), name="m.onnx"),
        file_spec(weights, at(tmp_path / "w", weights), part="weights", name="weights.bin"),
    )
    found = ModelCache(tmp_path / "cache").ensure(files)
    assert found["weights"] == found["model"].parent / "weights.bin"


def test_a_cache_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    files = file_set(file_spec(GOOD, at(tmp_path / "s", GOOD)))
    with pytest.raises(ModelError, match="cannot be used: Not a directory"):
        ModelCache(tmp_path / "s").ensure(files)


def as_nobody(*arguments: str) -> str:
    """What fetch_one says as a user who may write nothing here."""
    command = [sys.executable, "-m", "tests.unit.models.fetch_one", *arguments, "nobody"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr


def test_a_read_only_folder_serves_what_it_has(tmp_path: Path, readable: Path) -> None:
    source = at(tmp_path / "s", GOOD)
    files: FileSet = file_set(file_spec(GOOD, source))
    ModelCache(readable).ensure(files)
    for path in [*readable.rglob("*"), readable]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    (tmp_path / "s").unlink()
    assert as_nobody(str(readable), source, str(len(GOOD)), digest(GOOD)) == digest(GOOD)
    assert as_nobody(str(readable), source, str(len(GOOD)), "0" * 64) == "model_not_found"
