"""MDL-03 with real processes: two at once, one killed in the middle, a full disk."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from shared.models.cache import ModelCache
from tests.servers.fake_s3 import fake_s3
from tests.unit.models.places import digest, file_set, file_spec, serving

ROOT = Path(__file__).resolve().parents[3]
BODY = os.urandom(2 << 20)

pytestmark = pytest.mark.slow


class Start(Protocol):
    def __call__(self, root: Path, url: str, *, data: bytes = BODY, limit: str = "") -> subprocess.Popen[str]: ...


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process that fetches one file into a cache."""
    started: list[subprocess.Popen[str]] = []

    def fetch(root: Path, url: str, *, data: bytes = BODY, limit: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.unit.models.fetch_one", str(root), url, str(len(data)), digest(data)]
        process = subprocess.Popen([*command, *filter(None, [limit])], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield fetch
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=60)[0].strip()


def wait_for(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit, "did not happen in 30 s"
        time.sleep(0.005)


def files_in(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and ".locks" not in path.parts]


@pytest.mark.parametrize("count", [2, 6])
def test_mdl_03_processes_at_once_download_once(tmp_path: Path, start: Start, count: int) -> None:
    with serving(BODY) as server:
        server.pause = 0.004  # 128 pieces: half a second
        processes = [start(tmp_path / "cache", server.url) for _ in range(count)]
        assert [said(process) for process in processes] == [digest(BODY)] * count
        assert len(server.requests) == 1
    assert len(files_in(tmp_path / "cache")) == 2  # the model and its manifest


def test_mdl_03_a_waiter_takes_over_from_a_killed_downloader(tmp_path: Path, start: Start) -> None:
    with serving(BODY) as server:
        server.pause = 0.02
        killed = start(tmp_path / "cache", server.url)
        wait_for(lambda: server.sent > 0)
        waiter = start(tmp_path / "cache", server.url)
        wait_for(lambda: server.sent > len(BODY) * 3 // 4)
        assert len(server.requests) == 1
        assert any(path.stat().st_size for path in files_in(tmp_path / "cache"))
        killed.send_signal(signal.SIGKILL)
        assert said(killed) == ""
        server.pause = 0.0
        assert said(waiter) == digest(BODY)
        assert len(server.requests) == 2
    assert len(files_in(tmp_path / "cache")) == 2


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9])
def test_mdl_03_the_start_after_a_kill_cleans_and_fetches(tmp_path: Path, start: Start, fraction: float) -> None:
    root = tmp_path / "cache"
    with serving(BODY) as server:
        server.pause = 0.003
        killed = start(root, server.url)
        wait_for(lambda: server.sent > fraction * len(BODY))
        killed.kill()
        said(killed)
        assert not list(root.glob("sample-*"))
        server.pause = 0.0
        assert said(start(root, server.url)) == digest(BODY)
    assert len(files_in(root)) == 2
    assert list((root / ".tmp").iterdir()) == []


def test_mdl_03_a_limit_on_file_size_is_a_full_disk(tmp_path: Path, start: Start) -> None:
    root = tmp_path / "cache"
    with serving(BODY) as server:
        assert said(start(root, server.url, limit="size=500000")) == "cache_full"
        assert files_in(root) == []
        assert said(start(root, server.url)) == digest(BODY)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a tmpfs")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_mdl_03_a_full_disk_leaves_nothing(small_disk: Path, start: Start) -> None:
    """The size is not known beforehand to be too much: another writer fills the disk while the file arrives."""
    root, filler = small_disk / "cache", small_disk / "other"
    data = os.urandom(700 << 10)
    files = file_set(file_spec(data, "http://127.0.0.1"))
    with serving(data) as server:
        server.pause = 0.02
        process = start(root, server.url, data=data)
        wait_for(lambda: server.sent > 0)
        filler.write_bytes(bytes(500 << 10))
        assert said(process) == "cache_full"
        assert files_in(root) == []
        assert ModelCache(root).find(files) is None
        filler.unlink()
        server.pause = 0.0
        assert said(start(root, server.url, data=data)) == digest(data)


def test_mdl_03_what_a_killed_process_left_takes_no_room(small_disk: Path, start: Start) -> None:
    root, data = small_disk / "cache", os.urandom(700 << 10)
    left = root / ".tmp" / file_set(file_spec(data)).folder / "killed"
    left.mkdir(parents=True)
    (left / "model.bin").write_bytes(data[: 600 << 10])
    with serving(data) as server:
        assert said(start(root, server.url, data=data)) == digest(data)


FROM_BUCKET = """
import sys
from pathlib import Path
from shared.models import partial, ranges
from shared.models.cache import ModelCache
from shared.models.receiving import measure
from shared.models.spec import FileSet, FileSpec
from shared.storage.s3 import S3Store
partial.RANGE, ranges.RANGE, ranges.FIRST = 1 << 16, 1 << 16, 1 << 14
root, size, sha256 = sys.argv[1:]
file = FileSpec(part="model", name="model.bin", size=int(size), sha256=sha256)
cache = ModelCache(Path(root), S3Store("bucket"))
print(measure(cache.ensure(FileSet(name="sample", licence="none", files=(file,)))["model"]).sha256)
"""


def test_mdl_03_a_downloader_killed_at_ten_random_points_loses_little_and_never_the_truth(tmp_path: Path) -> None:
    root, points, data = tmp_path / "cache", random.Random(9), BODY * 4
    with fake_s3() as server:
        server.objects[f"models/sha256/{digest(data)}"] = data
        server.piece = lambda: time.sleep(0.05)
        command = [sys.executable, "-c", FROM_BUCKET, str(root), str(len(data)), digest(data)]
        env = {**os.environ, **server.environment()}
        kept = 0
        for _ in range(10):
            before = server.sent
            process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
            limit = before + points.uniform(0, 0.1) * len(data)
            wait_for(lambda limit=limit: server.sent > limit)
            process.kill()
            process.communicate()
            assert not list(root.glob("sample-*")), "no final name before all of it is there"
            written = sum(len(path.read_text().splitlines()) for path in (root / ".part").glob("*.ranges"))
            assert written >= kept, "what was there stays there"
            kept = written
        server.piece = lambda: None
        before = server.sent
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout.strip() == digest(data), done.stderr
        assert kept > 2
        assert server.sent - before < len(data), "what the killed ones had fetched is not fetched again"
    assert len(files_in(root)) == 2
