"""A model of 500 MB from a real S3 server into the node's cache, beside what server and disk give at most.

    python -m tests.benchmarks.bench_fetch [--mb 500] [--runs 5]

"Server" is the same object in the same ranges by as many raw HTTP connections, thrown away; "hashed" the same with
the SHA-256 of each range; "boto3" the same as "server" over boto3; "disk" is `cp` of the file and `sync` of the copy,
since a fetch ends with its bytes on disk. "Fetch" is ModelCache.ensure: ranges, digest, sync, marker. "digest" and
"write" are what a fetch does beside receiving, alone: SHA-256 of bytes in memory, one core, and as many bytes written
from memory into a preallocated file and synced. All run in turn, the best of each counts (what is above it comes from
the machine's other processes); boto3's client is made before (0.06 s, once a process).

Server, client and disk share the machine, so what one spends the other lacks: where "server" alone fills all cores, a
fetch, which must hash and write as well, cannot come near its rate. So CPU seconds are counted, of the server and of
this side, and the floor is the longest of: server, disk, digest alone; CPU of server + digest + write, over the cores.
"Linked" and "over link" are "server" and "fetch" where the server is behind a link of LINK MB/s, as a node's bucket is:
then cores are left, and what counts is how much of the link is used.

The last line is JSON; `limit_mb_s` is the slower of server and disk, `floor_mb_s` what the floor leaves of it,
`second_bytes` what a second process on the node asks the server for, `downloads_of_ten` how many of ten processes that
start at once download, `of_link` what a fetch has of the link's rate.
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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from shared.models.cache import ModelCache
from shared.models.partial import RANGE
from shared.models.ranges import PIECE, THREADS
from shared.models.spec import FileSet, FileSpec
from shared.storage.protocol import ObjectInfo, Write
from shared.storage.s3 import S3Store
from tests.benchmarks.link import Link
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "models"
WRITTEN = 1 << 18
"""Bytes written at once, as a fetch does: the kernel takes longer to find room for larger ones."""
LINK = 400
"""MB/s, 3.2 Gbit/s: with more, server, relay and fetch would not fit on two cores."""


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
    server = Seaweed(folder / "weed", memory="1GiB")
    try:
        server.start()
        os.environ |= {"AWS_DEFAULT_REGION": "us-east-1"}
        os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        measure(folder, arguments.mb * 1_000_000, arguments.runs, server.endpoint)
    finally:
        server.stop()
        shutil.rmtree(folder)


@dataclass(frozen=True)
class Cost:
    """Seconds of one way."""

    wall: float
    server: float
    """CPU."""
    here: float
    """CPU of this process and of what it started."""

    @property
    def cpu(self) -> float:
        return self.server + self.here


def measure(folder: Path, size: int, runs: int, server: str) -> None:
    source = folder / "source"
    digest = made(source, size)
    store, key = opened(server), f"models/sha256/{digest}"
    store._client.create_bucket(Bucket=BUCKET)
    store.upload(source, key)
    with closing(Link(server, LINK)) as link:
        far = opened(link.address)
        ways: dict[str, Callable[[], object]] = {
            "server": lambda: raw(store.link(key, 600), size),
            "hashed": lambda: raw(store.link(key, 600), size, hashlib.sha256),
            "boto3": lambda: thrown_away(store, key, size),
            "disk": lambda: copied(source, folder / "copy"),
            "digest": lambda: digested(size),
            "write": lambda: written(folder / "copy", size),
            "fetch": lambda: fetched(store, folder / "cache", digest, size),
            "linked": lambda: raw(far.link(key, 600), size),
            "over link": lambda: fetched(far, folder / "cache", digest, size),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        for _ in range(runs):
            for name, way in ways.items():
                shutil.rmtree(folder / "cache", ignore_errors=True)
                (folder / "copy").unlink(missing_ok=True)
                costs[name].append(costed(way))
    os.environ["AWS_ENDPOINT_URL_S3"] = server
    second = started_at_once(1, folder / "cache", digest, size)
    ten = started_at_once(10, folder / "ten", digest, size)
    report(show(costs, size / 1e6), size, sum(second), sum(ten))


def opened(endpoint: str) -> Counting:
    """A store whose client is made."""
    os.environ["AWS_ENDPOINT_URL_S3"] = endpoint
    store = Counting(BUCKET)
    assert store._client
    return store


def report(best: Mapping[str, Cost], size: int, second: int, ten: int) -> None:
    wall = {name: cost.wall for name, cost in best.items()}
    limit, floor = max(wall["server"], wall["disk"]), floor_of(best)
    numbers = {
        "mb_s": round(size / 1e6 / wall["fetch"]),
        "limit_mb_s": round(size / 1e6 / limit),
        "second_bytes": second,
        "downloads_of_ten": round(ten / size, 2),
        "of_limit": round(limit / wall["fetch"], 2),
        "floor_mb_s": round(size / 1e6 / floor),
        "of_floor": round(floor / wall["fetch"], 2),
        "of_link": round(wall["linked"] / wall["over link"], 2),
    }
    rates = {f"{name.replace(' ', '_')}_mb_s": round(size / 1e6 / seconds) for name, seconds in wall.items()}
    print(json.dumps({**numbers, **{name: rate for name, rate in rates.items() if name != "fetch_mb_s"}}))


def costed(way: Callable[[], object]) -> Cost:
    servers, before = psutil.Process().children(), os.times()
    spent = [sum(process.cpu_times()[:2]) for process in servers]
    started = time.perf_counter()
    way()
    wall, after = time.perf_counter() - started, os.times()
    server = sum(sum(process.cpu_times()[:2]) for process in servers) - sum(spent)
    return Cost(wall, server, sum(after[:4]) - sum(before[:4]))


def show(costs: Mapping[str, list[Cost]], mb: float) -> dict[str, Cost]:
    """Of each way its best wall time, and the least that server and client spent."""
    runs, cores = len(costs["fetch"]), os.cpu_count() or 1
    print(f"{'':10}{'best MB/s':>10}{'median':>8}{'CPU s: server':>15}{'here':>7}{'of all cores':>14}")
    best = {}
    for name, found in costs.items():
        walls = sorted(cost.wall for cost in found)
        least = Cost(walls[0], min(cost.server for cost in found), min(cost.here for cost in found))
        used = least.cpu / least.wall / cores
        rates = f"{mb / least.wall:10.0f}{mb / walls[len(walls) // 2]:8.0f}"
        print(f"{name:10}{rates}{least.server:15.2f}{least.here:7.2f}{used:14.0%}")
        best[name] = least
    print(f"{runs} runs of {mb:.0f} MB on {cores} cores, load {os.getloadavg()[0]:.1f}; the floor of a fetch is")
    print(f"{floor_of(best):.2f} s: {mb / floor_of(best):.0f} MB/s; a fetch had {best['fetch'].wall:.2f} s")
    return best


def floor_of(best: Mapping[str, Cost]) -> float:
    shared = best["server"].cpu + best["digest"].here + best["write"].here
    alone = (best[name].wall for name in ("server", "disk", "digest"))
    return max(*alone, shared / (os.cpu_count() or 1))


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


def digested(size: int) -> None:
    digest, piece = hashlib.sha256(), memoryview(os.urandom(PIECE))
    for start in range(0, size, PIECE):
        digest.update(piece[: size - start])


def written(path: Path, size: int) -> None:
    piece = memoryview(os.urandom(WRITTEN))
    with path.open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        for start in range(0, size, WRITTEN):
            file.write(piece[: size - start])
        os.fdatasync(file.fileno())


def fetched(store: Counting, root: Path, digest: str, size: int) -> int:
    store.received = 0
    file = FileSpec(part="model", name="model.onnx.data", size=size, sha256=digest)
    ModelCache(root, store).ensure(FileSet(name="bench", licence="none", files=(file,)))
    return store.received


def one(root: str, digest: str, size: str) -> None:
    print(fetched(Counting(BUCKET), Path(root), digest, int(size)))


def started_at_once(count: int, root: Path, digest: str, size: int) -> list[int]:
    """Bytes that each process had from the server."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_fetch", "--one", str(root), digest, str(size)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [int(process.communicate()[0]) for process in processes]


if __name__ == "__main__":
    main()
