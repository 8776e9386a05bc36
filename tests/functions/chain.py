"""The picture stages run one after the other in this process: real models, a real folder store, no events."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from functions.detect import main as detect
from functions.enhance import main as enhance
from functions.moderate import main as moderate
from functions.publish import main as publish
from functions.swap import main as swap
from shared.context import Deadline, Metrics, Models
from shared.errors import DeadlineExceededError
from shared.events.choices import Options
from shared.events.payloads import Faces, Job, Media, ObjectRef, Result
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore
from shared.tenancy.tenant import Tenant
from shared.video_settings import VideoSettings

A = TypeVar("A")
JOB = "0b7e4a4e-0000-4000-8000-000000000001"


class Counters:
    def count(self, name: str, amount: float = 1.0, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...


@dataclass
class Clock:
    left: float = 300.0

    def remaining(self) -> float:
        return self.left

    def check(self) -> None:
        if self.left <= 0:
            raise DeadlineExceededError


@dataclass
class StageContext:
    storage: TenantStore
    models: Models
    tenant: Tenant = field(default_factory=lambda: Tenant("demo"))
    log: logging.LoggerAdapter[logging.Logger] = field(
        default_factory=lambda: logging.LoggerAdapter(logging.getLogger("test"))
    )
    metrics: Metrics = field(default_factory=Counters)
    deadline: Deadline = field(default_factory=Clock)
    video: VideoSettings = field(default_factory=VideoSettings)
    cause: str = "0" * 32


@dataclass
class Parts:
    """The registry with other parts in place of some, and with other models chosen for some roles."""

    models: Models
    """None: none is chosen for any role."""
    parts: Mapping[str, object]
    roles: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str, protocol: type[A]) -> A:
        part = self.parts.get(name) or self.models.get(name, protocol)
        return cast("A", part)

    def digest(self, name: str) -> str:
        return self.models.digest(name) if name not in self.parts else "0" * 64

    def embedded(self, name: str) -> bool:
        return name not in self.parts and self.models.embedded(name)

    def provider(self, name: str) -> str:
        return "cpu" if name in self.parts else self.models.provider(name)

    def chosen(self, role: str) -> str:
        return self.roles.get(role, "") or (self.models.chosen(role) if self.models else "")

    def permit(self, name: str, role: str) -> None:
        if name not in self.parts:
            self.models.permit(name, role)

    def warm(self, *names: str) -> None: ...


@dataclass
class Chain:
    root: Path
    models: Models

    def __post_init__(self) -> None:
        self.store = LocalStore(self.root)

    def context(self, stage: str) -> StageContext:
        return StageContext(TenantStore(self.store, "demo", JOB, stage), self.models)

    def put(self, name: str, data: bytes, content_type: str) -> ObjectRef:
        info = self.store.put(keys.inbox("demo", name), data, content_type=content_type)
        return ObjectRef(info.key, hashlib.sha256(data).hexdigest(), len(data), content_type)

    def job(self, source: Path | bytes, target: Path | bytes, **options: object) -> Job:
        pictures = [path if isinstance(path, bytes) else path.read_bytes() for path in (source, target)]
        kinds = ["image/png" if data.startswith(b"\x89PNG") else "image/jpeg" for data in pictures]
        refs = [self.put(f"x/{role}", data, kind) for role, data, kind in zip("st", pictures, kinds, strict=True)]
        return Job(JOB, (refs[0],), refs[1], Options(**options))  # type: ignore[arg-type]

    def moderate(self, job: Job) -> Job:
        return moderate.handle(job, self.context("moderate"))

    def detect(self, job: Job) -> Faces:
        return detect.handle(job, self.context("detect"))

    def swap(self, faces: Faces) -> Media:
        return swap.handle(faces, self.context("swap"))

    def enhance(self, media: Media) -> Media:
        """As the Triggers do: only jobs that ask for it come here."""
        options = media.request.options
        asked = options.enhancer or options.upscaler
        return enhance.handle(media, self.context("enhance")) if asked else media

    def publish(self, media: Media) -> Result:
        return publish.handle(media, self.context("publish"))

    def run(self, source: Path | bytes, target: Path | bytes, **options: object) -> tuple[Result, bytes]:
        result = self.publish(self.enhance(self.swap(self.detect(self.moderate(self.job(source, target, **options))))))
        return result, self.store.get(result.image.key)[0]
