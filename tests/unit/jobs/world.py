"""A front door's surroundings with a real folder store, and pictures made on the spot."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from shared.context import Deadline, Metrics
from shared.errors import DeadlineExceededError, JsonValue
from shared.events.event import Event
from shared.events.notifications import ObjectCreated
from shared.events.payloads import Job, Rejection
from shared.jobs import uploads
from shared.jobs.accepted import Accepted
from shared.storage.protocol import ObjectStore
from shared.tenancy.directory import Directory, load
from shared.video_settings import VideoSettings

DATA = Path(__file__).resolve().parents[2] / "data"
TENANTS = json.dumps({"demo": {}, "acme": {}, "small": {"policy": {"max_bytes": 5000, "max_pixels": 10_000}}})
KEYS = ",".join(f"{name}=key-of-{name}-0123456789" for name in ("demo", "acme", "small"))
NOW = 1_800_000_000.0


@cache
def picture(shade: int = 0, side: int = 64, kind: str = "JPEG") -> bytes:
    """A plain picture; each shade has other bytes."""
    out = io.BytesIO()
    Image.new("RGB", (side, side), (shade, 80, 120)).save(out, kind)
    return out.getvalue()


def event_file(name: str) -> Any:
    return json.loads((DATA / "event" / name).read_bytes())


@dataclass
class Counted:
    """Implements shared.context.Metrics."""

    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        key = ".".join([name, *labels.values()])
        self.counts[key] = self.counts.get(key, 0) + int(amount)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.counts[".".join([name, *labels.values()])] = int(value)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


@dataclass
class Steps:
    """A deadline of so many looks at the clock."""

    left: int = 1_000_000

    def remaining(self) -> float:
        return float(self.left)

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise DeadlineExceededError


@dataclass
class World:
    """Implements shared.context.FrontContext."""

    store: ObjectStore
    tenants: Directory = field(default_factory=lambda: load(TENANTS, KEYS))
    bucket: str = "wakeswap"
    key_prefix: str = ""
    grace_seconds: float = 60.0
    slot_seconds: float = 900.0
    spread: float = 0.0
    video: VideoSettings = field(default_factory=VideoSettings)
    pauses: list[float] = field(default_factory=list)
    log: logging.LoggerAdapter[logging.Logger] = field(
        default_factory=lambda: logging.LoggerAdapter(logging.getLogger("test"))
    )
    counted: Counted = field(default_factory=Counted)
    steps: Steps = field(default_factory=Steps)
    time: float = NOW

    def __post_init__(self) -> None:
        self.metrics: Metrics = self.counted
        self.deadline: Deadline = self.steps

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return True

    def is_proven(self, event: Event) -> bool:
        return True

    def put(self, key: str, data: bytes | None = None, *, metadata: Mapping[str, str] | None = None) -> str:
        self.store.put(key, picture() if data is None else data, metadata=metadata or {})
        return key

    def upload(self, *keys: str, age: float = 0.0, bucket: str = "wakeswap") -> list[Accepted]:
        """Notify of objects as the store would; each says that it was written `age` seconds ago."""
        told = [ObjectCreated(bucket, key, etag="e", sequencer="1", time=self.time - age) for key in keys]
        return list(uploads.accept(told, self))


def jobs(accepted: list[Accepted]) -> list[Job]:
    return [entry.payload for entry in accepted if isinstance(entry.payload, Job)]


def rejections(accepted: list[Accepted]) -> list[Rejection]:
    return [entry.payload for entry in accepted if isinstance(entry.payload, Rejection)]


def ping(minute: str = "2026-01-02T03:04", identity: str = "e-1", **data: str) -> Event:
    source = "/apis/v1/namespaces/wakeswap/pingsources/nightly"
    body: JsonValue = {"tenant": "demo", "prefix": "nightly/", **data}
    return Event(identity, source, "dev.knative.sources.ping", time=f"{minute}:05Z", data=body)


def drain(entries: Iterable[Accepted], seen: list[Accepted]) -> None:
    """Take everything, keeping what came before an error."""
    for entry in entries:
        seen.append(entry)
