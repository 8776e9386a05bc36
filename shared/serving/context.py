"""What a stage is handed: the protocols of shared.context, filled in. Knows settings, storage and telemetry.

The model registry is imported on first use, so that a stage without models never loads numpy.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shared.context import Deadline, Metrics, Models
from shared.errors import DeadlineExceededError, StoppingError
from shared.events.event import Event
from shared.events.proof import EventKeys
from shared.serving.lifecycle import Lifecycle
from shared.serving.watch import Watch
from shared.settings import ModelSettings
from shared.storage.protocol import ObjectStore
from shared.storage.scoped import TenantStore
from shared.telemetry.logs import Log
from shared.tenancy.directory import Directory
from shared.tenancy.tenant import Tenant
from shared.video_settings import VideoSettings

if TYPE_CHECKING:
    from shared.models.registry import ModelRegistry
    from shared.models.residents import Meter
    from shared.models.versions import Versions
    from shared.usage.pricing import Prices

A = TypeVar("A")
_LOOK_SECONDS = 0.2
"""Between two looks at whether the process has to end."""


@dataclass(frozen=True)
class EventDeadline:
    """When this event must be done: its own time is up, or the process has to end."""

    ends: float
    """Monotonic."""
    lifecycle: Lifecycle
    watch: Watch | None = None

    def remaining(self) -> float:
        return min(self.ends, self.lifecycle.ends) - time.monotonic()

    def check(self) -> None:
        if self.watch is not None:
            self.watch.check()
        if self.remaining() > 0:
            return
        if self.lifecycle.ends < self.ends:
            raise StoppingError("Not finished before this process had to end.")
        raise DeadlineExceededError


@dataclass(frozen=True)
class PriceList:
    """The price file, read when a stage first asks for it. `path` empty: the product's own."""

    path: str = ""

    def __call__(self) -> Prices:
        from shared.usage import pricing

        return pricing.read(self.path)


@dataclass
class StageSetup:
    models: Models
    log: Log
    prices: PriceList


@dataclass
class EventContext:
    storage: TenantStore
    models: Models
    tenant: Tenant
    log: Log
    metrics: Metrics
    deadline: Deadline
    video: VideoSettings
    cause: str


@dataclass
class DoorContext:
    store: ObjectStore
    tenants: Directory
    bucket: str
    key_prefix: str
    grace_seconds: float
    slot_seconds: float
    spread: float
    video: VideoSettings
    log: Log
    metrics: Metrics
    deadline: Deadline
    proof: EventKeys
    lifecycle: Lifecycle
    prices: PriceList

    def now(self) -> float:
        return time.time()

    def pause(self, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0 and not self.lifecycle.stopping:
            time.sleep(min(left, _LOOK_SECONDS))
        return not self.lifecycle.stopping

    def is_proven(self, event: Event) -> bool:
        return self.proof.proves(event)


class LazyModels:
    """The process's registry, made when a stage first asks for a model."""

    def __init__(self, settings: ModelSettings, meter: Meter | None = None) -> None:
        """`meter`: told of loads, hits and what is in memory."""
        self._settings = settings
        self._meter = meter
        self._made: ModelRegistry | None = None
        self._versions: Versions | None = None
        self._making = threading.Lock()

    def get(self, name: str, protocol: type[A]) -> A:
        return self._registry().get(name, protocol)

    def chosen(self, role: str) -> str:
        return self._registry().chosen(role)

    def digest(self, name: str) -> str:
        return self._registry().digest(name)

    def permit(self, name: str, role: str) -> None:
        self._registry().permit(name, role)

    def warm(self, *names: str) -> None:
        self._registry().warm(*names)

    def embedded(self, name: str) -> bool:
        return self._registry().embedded(name)

    def provider(self, name: str) -> str:
        return self._registry().provider(name)

    def under(self, tenant: Tenant) -> Models:
        """The same models as a job of this tenant may use them, in the versions that are its own."""
        from shared.models import build

        registry = self._registry()
        with self._making:
            self._versions = self._versions or build.versions(registry, self._settings)
        return build.tenant_view(self._versions.of(tenant), self._settings, tenant.policy)

    def _tell(self) -> None:
        """What the init step fetched, once: another process of this pod must not count it again."""
        if self._settings.report and self._meter is not None:
            from shared.models.tally import INIT, Tally

            path = Path(self._settings.report)
            Tally.left(path).count(self._meter, INIT)
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _registry(self) -> ModelRegistry:
        with self._making:
            if self._made is None:
                from shared.models import build

                self._made = build.registry(self._settings, self._meter)
                self._tell()
            return self._made


@dataclass(frozen=True)
class JobModels:
    """The registry in one event's context: in its tenant's versions, and what a job asks for by name held against its
    tenant's policy."""

    models: LazyModels
    tenant: Tenant

    def get(self, name: str, protocol: type[A]) -> A:
        return self.models.under(self.tenant).get(name, protocol)

    def chosen(self, role: str) -> str:
        return self.models.chosen(role)

    def digest(self, name: str) -> str:
        return self.models.under(self.tenant).digest(name)

    def embedded(self, name: str) -> bool:
        return self.models.embedded(name)

    def provider(self, name: str) -> str:
        return self.models.under(self.tenant).provider(name)

    def permit(self, name: str, role: str) -> None:
        self.models.under(self.tenant).permit(name, role)

    def warm(self, *names: str) -> None:
        self.models.warm(*names)
