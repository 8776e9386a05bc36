"""MDL-03: room for a model is made by removing what nobody uses, least recently used first, and no more than needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import CacheFullError
from shared.models.cache import ModelCache
from shared.models.spec import FileSet
from shared.storage.local import LocalStore
from tests.unit.models.places import digest, file_set, file_spec

ROOT = Path(__file__).resolve().parents[3]
SIZE = 100_000


class Disk:
    """What `shutil.disk_usage` says of a disk that holds `size` bytes of model files."""

    def __init__(self, root: Path, size: int) -> None:
        self.root, self.size = root, size
        self._real = shutil.disk_usage(root.parent)

    def usage(self, _: Path) -> object:
        files = [path for path in self.root.rglob("*") if path.is_file() and path.stat().st_size >= SIZE]
        return self._real._replace(free=self.size - sum(path.stat().st_size for path in files))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Room for three models and a bit."""
    disk = Disk(tmp_path / "cache", 3 * SIZE + SIZE // 2)
    monkeypatch.setattr(shutil, "disk_usage", disk.usage)
    return disk


def model(tmp_path: Path, name: str, count: int = 1) -> FileSet:
    data = name.encode() + os.urandom(count * SIZE - len(name))
    (tmp_path / name).write_bytes(data)
    return file_set(file_spec(data, f"file:{tmp_path / name}"), name=name)


def used(root: Path, files: FileSet, seconds_ago: float) -> None:
    moment = time.time() - seconds_ago
    os.utime(root / ".locks" / f"{files.folder}.use", (moment, moment))


def fetched(root: Path, *sets: FileSet) -> None:
    """By processes that have ended since; each was used later than the one before it."""
    for age, files in enumerate(reversed(sets), start=1):
        ModelCache(root).ensure(files)
        used(root, files, age * 100)


def names(root: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[0] for path in root.glob("[!.]*"))


def test_mdl_03_the_least_recently_used_goes_and_no_more(tmp_path: Path, disk: Disk) -> None:
    a, b, c, d = (model(tmp_path, name) for name in "abcd")
    fetched(disk.root, a, b, c)
    ModelCache(disk.root).ensure(a)
    used(disk.root, a, 61)
    ModelCache(disk.root).ensure(d)
    assert names(disk.root) == ["a", "c", "d"]
    assert list((disk.root / ".tmp/removed").iterdir()) == []


def test_mdl_03_two_go_for_a_large_one(tmp_path: Path, disk: Disk) -> None:
    fetched(disk.root, *(model(tmp_path, name) for name in "abc"))
    ModelCache(disk.root).ensure(model(tmp_path, "large", 2))
    assert names(disk.root) == ["c", "large"]


def test_mdl_03_nothing_goes_where_it_would_not_help(tmp_path: Path, disk: Disk) -> None:
    fetched(disk.root, *(model(tmp_path, name) for name in "abc"))
    with pytest.raises(CacheFullError):
        ModelCache(disk.root).ensure(model(tmp_path, "huge", 4))
    assert names(disk.root) == ["a", "b", "c"]


def test_mdl_03_what_this_process_uses_stays_until_it_lets_go(tmp_path: Path, disk: Disk) -> None:
    a, b, c, d, e = (model(tmp_path, name) for name in "abcde")
    fetched(disk.root, a, b, c)
    cache = ModelCache(disk.root)
    for files in (a, b, c):
        cache.ensure(files)
        used(disk.root, files, 1000)
    with pytest.raises(CacheFullError):
        cache.ensure(d)
    cache.release(b)
    cache.ensure(d)
    assert names(disk.root) == ["a", "c", "d"]
    del cache
    for files in (a, c, d):
        used(disk.root, files, 1000)
    ModelCache(disk.root).ensure(e)
    assert len(names(disk.root)) == 3


def test_mdl_03_what_was_fetched_a_moment_ago_stays(tmp_path: Path, disk: Disk) -> None:
    """The init step has fetched it and ended; the function that will use it is starting."""
    for name in "abc":
        ModelCache(disk.root).ensure(model(tmp_path, name))
    with pytest.raises(CacheFullError):
        ModelCache(disk.root).ensure(model(tmp_path, "d"))


@pytest.fixture
def other(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


USER = """
import sys
from pathlib import Path
from shared.models.cache import ModelCache
from tests.unit.models.places import file_set, file_spec
root, source, name = sys.argv[1:]
cache = ModelCache(Path(root))
cache.ensure(file_set(file_spec(Path(source).read_bytes(), f"file:{source}"), name=name))
print("using", flush=True)
sys.stdin.read()
"""


def test_mdl_03_what_another_process_uses_stays_until_it_dies(
    tmp_path: Path, disk: Disk, other: list[subprocess.Popen[str]]
) -> None:
    a, b, c, d = (model(tmp_path, name) for name in "abcd")
    fetched(disk.root, a, b, c)
    command = [sys.executable, "-c", USER, str(disk.root), str(tmp_path / "a"), "a"]
    user = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    other.append(user)
    assert user.stdout
    assert user.stdout.readline() == "using\n"
    used(disk.root, a, 1000)
    ModelCache(disk.root).ensure(d)
    used(disk.root, d, 500)
    assert names(disk.root) == ["a", "c", "d"]
    user.kill()
    user.wait()
    ModelCache(disk.root).ensure(b)
    assert names(disk.root) == ["b", "c", "d"]


def test_mdl_03_what_was_left_unfinished_goes_first(tmp_path: Path, disk: Disk) -> None:
    a, b, c = (model(tmp_path, name) for name in "abc")
    fetched(disk.root, a, b)
    left = disk.root / ".part" / "0123"
    left.parent.mkdir()
    left.write_bytes(os.urandom(SIZE + 8192))
    left.with_name("0123.ranges").write_text("{}")
    ModelCache(disk.root).ensure(c)
    assert names(disk.root) == ["a", "b", "c"]
    assert list(left.parent.iterdir()) == []


def test_its_own_unfinished_part_counts_as_room(tmp_path: Path, disk: Disk) -> None:
    data = os.urandom(3 * SIZE)
    store = LocalStore(tmp_path / "store")
    store.put(f"models/sha256/{digest(data)}", data)
    part = disk.root / ".part" / digest(data)
    part.parent.mkdir(parents=True)
    part.write_bytes(data)  # without a record: to be written over
    ModelCache(disk.root, store).ensure(file_set(file_spec(data)))
    assert names(disk.root) == ["sample"]
