"""A model of 500 MB from a real S3 server into the node's cache, beside what server and disk give at most.

    python -m tests.benchmarks.bench_fetch [--mb 500] [--runs 5]

"Server" is the same object in the same ranges by as many raw HTTP connections, thrown away; "hashed" the same with
the SHA-256 of each range, which no fetch can do without; "boto3" the same as "server" over boto3; "disk" is `cp` of
the file and `sync` of the copy, since a fetch ends with its bytes on disk. "Fetch" is ModelCache.ensure: ranges,
digest, sync, marker. All run in turn, the best of each counts (what is above it comes from the machine's other
processes). Server, client and disk share the machine, so what one spends the other lacks. The last line is JSON;
`limit_mb_s` is the slower of server and disk, `second_bytes` what a second process on the node asks the server for,
`downloads_of_ten` how many of ten processes that start at once download.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from shared.models.cache import ModelCache
from shared.models.partial import RANGE
from shared.models.ranges import THREADS
from shared.models.spec import FileSet, FileSpec
from shared.storage.protocol import ObjectInfo, Write
from shared.storage.s3 import S3Store
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "models"


class Counting(S3Store):
    """Counts what comes from the server."""

    received = 0

    def read_range(self, key: str, start: int, size: int, write: Write, *, etag: str = "") -> ObjectInfo:
        def counted(position: int, data: bytes) -> None:
            self.received += len(data)
            write(position, data)

        return super().read_range(key, start, size, counted, etag=etag)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(*arguments.one)
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-fetch-"))
    (folder / "weed").mkdir()
    server = Seaweed(folder / "weed")
    try:
        server.start()
        os.environ |= {"AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        measure(folder, arguments.mb * 1_000_000, arguments.runs)
    finally:
        server.stop()
        shutil.rmtree(folder)


def measure(folder: Path, size: int, runs: int) -> None:
    source = folder / "source"
    digest = made(source, size)
    store = S3Store(BUCKET)
    store._client.create_bucket(Bucket=BUCKET)
    key = f"models/sha256/{digest}"
    store.upload(source, key)
    ways: dict[str, Callable[[], object]] = {
        "server": lambda: raw(store.link(key, 600), size),
        "hashed": lambda: raw(store.link(key, 600), size, hashlib.sha256),
        "boto3": lambda: thrown_away(store, key, size),
        "disk": lambda: copied(source, folder / "copy"),
        "fetch": lambda: fetched(folder / "cache", digest, size),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            shutil.rmtree(folder / "cache", ignore_errors=True)
            (folder / "copy").unlink(missing_ok=True)
            started = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - started)
    print(
        f"{'':8}{'best MB/s':>10}{'median':>8}   of {runs} runs of {size / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}"
    )
    best = {name: size / 1e6 / min(times) for name, times in seconds.items()}
    for name, times in seconds.items():
        print(f"{name:8}{best[name]:10.0f}{size / 1e6 / sorted(times)[len(times) // 2]:8.0f}")
    second = started_at_once(1, folder / "cache", digest, size)
    ten = started_at_once(10, folder / "ten", digest, size)
    limit = min(best["server"], best["disk"])
    report = {
        "mb_s": round(best["fetch"]),
        "limit_mb_s": round(limit),
        "second_bytes": sum(second),
        "downloads_of_ten": round(sum(ten) / size, 2),
        "of_limit": round(best["fetch"] / limit, 2),
        "server_mb_s": round(best["server"]),
        "hashed_mb_s": round(best["hashed"]),
        "boto3_mb_s": round(best["boto3"]),
        "disk_mb_s": round(best["disk"]),
    }
    print(json.dumps(report))


def made(path: Path, size: int) -> str:
    digest, left = hashlib.sha256(), size
    with path.open("wb") as file:
        while left:
            data = os.urandom(min(left, 1 << 20))
            digest.update(data)
            file.write(data)
            left -= len(data)
    return digest.hexdigest()


def in_parallel(work: Callable[[int, int], object], size: int) -> None:
    spans = [(start, min(size, start + RANGE)) for start in range(0, size, RANGE)]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda span: work(*span), spans))


def raw(link: str, size: int, digest: Callable[[], hashlib._Hash] | None = None) -> None:
    address = urlsplit(link)

    def get(start: int, end: int) -> None:
        connection = http.client.HTTPConnection(address.netloc)
        connection.request("GET", f"{address.path}?{address.query}", headers={"Range": f"bytes={start}-{end - 1}"})
        answer, buffer, got = connection.getresponse(), memoryview(bytearray(1 << 18)), 0
        sha256 = digest() if digest else None
        while count := answer.readinto(buffer):
            got += count
            if sha256:
                sha256.update(buffer[:count])
        connection.close()
        assert got == end - start

    in_parallel(get, size)


def thrown_away(store: S3Store, key: str, size: int) -> None:
    in_parallel(lambda start, end: store.read_range(key, start, end - start, lambda position, data: None), size)


def copied(source: Path, copy: Path) -> None:
    subprocess.run(["cp", source, copy], check=True)
    subprocess.run(["sync", copy], check=True)


def fetched(root: Path, digest: str, size: int) -> int:
    store = Counting(BUCKET)
    file = FileSpec(part="model", name="model.onnx.data", size=size, sha256=digest)
    ModelCache(root, store).ensure(FileSet(name="bench", licence="none", files=(file,)))
    return store.received


def one(root: str, digest: str, size: str) -> None:
    print(fetched(Path(root), digest, int(size)))


def started_at_once(count: int, root: Path, digest: str, size: int) -> list[int]:
    """Bytes that each process had from the server."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_fetch", "--one", str(root), digest, str(size)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [int(process.communicate()[0]) for process in processes]


if __name__ == "__main__":
    main()
