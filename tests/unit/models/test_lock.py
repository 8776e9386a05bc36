"""Digests that the catalogue does not know: pinned by the first whole download, and held against every later one."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import ConfigError, ModelError, ModelInvalidError
from shared.models.cache import ModelCache
from shared.models.lock import LockFile
from shared.models.spec import FileSet, FileSpec
from shared.storage.local import LocalStore
from tests.unit.models.places import digest, file_set, network, serving

GOOD, OTHER = network(), network(ir=9)


def unknown(*sources: str, name: str = "m.onnx", size: int = 0, convert: str = "") -> FileSpec:
    return FileSpec(part="model", name=name, size=size, sources=sources, convert=convert)


def double(source: Path, target: Path) -> str:
    """A conversion of the tests."""
    target.write_bytes(source.read_bytes() * 2)
    return "doubled"


DOUBLE = f"{__name__}:double"


def test_the_first_download_is_pinned_and_a_later_other_one_refused(tmp_path: Path) -> None:
    with serving(GOOD) as server:
        files = file_set(unknown(server.url))
        found = ModelCache(tmp_path / "one").ensure(files)
        assert found["model"].read_bytes() == GOOD
        pins = LockFile(tmp_path / "models.lock.toml").read()
        assert pins == {("sample", "model"): (digest(GOOD), len(GOOD))}
        server.data = OTHER
        assert ModelCache(tmp_path / "one").ensure(files) == found, "what is in the cache is not fetched again"
        with pytest.raises(ModelInvalidError, match=f"expected {digest(GOOD)[:12]}"):
            ModelCache(tmp_path / "two").ensure(files)
        server.data = GOOD
        assert ModelCache(tmp_path / "two").ensure(files)["model"].read_bytes() == GOOD


def test_a_digest_of_the_catalogue_wins_over_the_lock_file(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "models.lock.toml")
    lock.pin("sample", "model", digest(OTHER), len(OTHER))
    with serving(GOOD) as server:
        known = replace(unknown(server.url), size=len(GOOD), sha256=digest(GOOD))
        assert ModelCache(tmp_path / "cache").ensure(file_set(known))["model"].read_bytes() == GOOD
    assert lock.read() == {("sample", "model"): (digest(OTHER), len(OTHER))}


@pytest.mark.parametrize(
    ("data", "size", "kind"),
    [
        (b"", 0, "empty"),
        (b"<!doctype html><p>Sign in", 0, "html"),
        (b"version https://git-lfs.github.com/spec/v1\n", 0, "lfs_pointer"),
        (GOOD[:-1], len(GOOD), "truncated"),
    ],
)
def test_what_is_no_model_is_never_pinned(tmp_path: Path, data: bytes, size: int, kind: str) -> None:
    with serving(data) as server, pytest.raises(ModelInvalidError) as caught:
        ModelCache(tmp_path / "cache").ensure(file_set(unknown(server.url, size=size)))
    assert caught.value.context["kind"] == kind
    assert LockFile(tmp_path / "models.lock.toml").read() == {}


def test_a_file_that_no_runtime_could_load_is_not_pinned(tmp_path: Path) -> None:
    with serving(b"\x00" * 100) as server, pytest.raises(ModelInvalidError, match="no ONNX model"):
        ModelCache(tmp_path / "cache").ensure(file_set(unknown(server.url)))
    assert not (tmp_path / "models.lock.toml").exists()


def test_of_a_converted_file_the_download_is_pinned_and_the_result_recorded(tmp_path: Path) -> None:
    lock = tmp_path / "elsewhere" / "pins.toml"
    lock.parent.mkdir()
    with serving(b"abc") as server:
        files = file_set(unknown(server.url, name="m.bin", convert=DOUBLE))
        cache = ModelCache(tmp_path / "cache", lock=lock)
        path = cache.ensure(files)["model"]
    assert path.read_bytes() == b"abcabc"
    assert LockFile(lock).read() == {("sample", "model"): (digest(b"abc"), 3)}
    text = (path.parent / "manifest.json").read_text()
    for fact in (digest(b"abcabc"), digest(b"abc"), "doubled"):
        assert fact in text
    assert cache.find(files) == {"model": path}


def test_the_bucket_is_asked_for_the_download_that_a_file_is_made_from(tmp_path: Path) -> None:
    bucket = LocalStore(tmp_path / "bucket")
    bucket.put(f"models/sha256/{digest(b'abc')}", b"abc")
    nowhere = replace(unknown(convert=DOUBLE, name="m.bin"), source_sha256=digest(b"abc"))
    assert ModelCache(tmp_path / "one", bucket).ensure(file_set(nowhere))["model"].read_bytes() == b"abcabc"
    LockFile(tmp_path / "models.lock.toml").pin("sample", "model", digest(b"abc"), 3)
    pinned = unknown(convert=DOUBLE, name="m.bin")
    assert ModelCache(tmp_path / "two", bucket).ensure(file_set(pinned))["model"].read_bytes() == b"abcabc"


def test_many_writers_lose_no_pin(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "lock.toml")
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        for part in range(5):
            LockFile(lock.path).pin(f"m.{number}", f"p{part}", hashlib.sha256(b"%d" % number).hexdigest(), number + 1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert len(lock.read()) == 40


def test_two_processes_that_fetched_different_bytes_do_not_both_win(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "lock.toml")
    lock.pin("m", "model", digest(GOOD), len(GOOD))
    lock.pin("m", "model", digest(GOOD), len(GOOD))
    with pytest.raises(ModelInvalidError, match=r"differs from what lock\.toml has pinned"):
        lock.pin("m", "model", digest(OTHER), len(OTHER))


@pytest.mark.parametrize("text", ["[", '[models.a.model]\nsha256 = "x"', "\xff"])
def test_a_damaged_lock_file_pins_nothing_in_silence(tmp_path: Path, text: str) -> None:
    (tmp_path / "models.lock.toml").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"models\.lock\.toml"):
        ModelCache(tmp_path / "cache").ensure(file_set(unknown("https://example.org/never-asked")))


def test_a_lock_file_that_cannot_be_written_keeps_the_model_out(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(GOOD)
    files: FileSet = file_set(unknown(f"file:{tmp_path}/source"))
    cache = ModelCache(tmp_path / "cache", lock=Path("/proc/wakeswap/lock.toml"))  # where nobody can write
    with pytest.raises(ModelError, match=r"cannot be noted in lock\.toml"):
        cache.ensure(files)
    assert cache.find(files) is None
