"""What the harness hands to a stage: storage, models, tenant, log, metrics, deadline, and nothing else.

A stage is two functions, `setup(ctx: SetupContext)` and `handle(event, ctx: Context)`. Knows protocols only,
so that importing it costs a stage nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from shared.events.event import Event
    from shared.storage.protocol import ObjectStore
    from shared.storage.scoped import TenantStore
    from shared.tenancy.directory import Directory
    from shared.tenancy.tenant import Tenant
    from shared.usage.pricing import Prices
    from shared.video_settings import VideoSettings

A = TypeVar("A")


class Models(Protocol):
    """The registry as a stage sees it."""

    def get(self, name: str, protocol: type[A]) -> A:
        """The loaded adapter of a catalogue entry, loading it on first use. `protocol` is what it must satisfy."""
        ...

    def chosen(self, role: str) -> str:
        """Catalogue name of the model that this installation uses for a role; empty: none."""
        ...

    def digest(self, name: str) -> str:
        """SHA-256 over the digests of the files that a model is loaded from: one name for exactly these weights."""
        ...

    def embedded(self, name: str) -> bool:
        """Whether a swapper is a method of this product, without a network: it draws its own masks."""
        ...

    def provider(self, name: str) -> str:
        """Where a model runs, which is loaded if need be: `cpu`, `cuda` or `tensorrt`."""
        ...

    def permit(self, name: str, role: str) -> None:
        """Refuse a model that `get` would refuse for its name, its role or the tenant's licences. Loads nothing."""
        ...

    def warm(self, *names: str) -> None:
        """Load these and run one sample through each."""
        ...


class Metrics(Protocol):
    def count(self, name: str, amount: float = 1.0, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...


class Deadline(Protocol):
    def remaining(self) -> float:
        """Seconds left for this event."""
        ...

    def check(self) -> None:
        """Raise DeadlineExceededError when no time is left; call it between long steps.

        Of a video also JobOverError once the job was cancelled or has ended: let it pass, and the harness is silent.
        """
        ...


class SetupContext(Protocol):
    models: Models
    log: logging.LoggerAdapter[logging.Logger]

    def prices(self) -> Prices:
        """What jobs cost here, read once. Raises ConfigError."""
        ...


class Context(Protocol):
    storage: TenantStore
    models: Models
    tenant: Tenant
    log: logging.LoggerAdapter[logging.Logger]
    metrics: Metrics
    deadline: Deadline
    video: VideoSettings
    """How this installation divides and writes videos."""
    cause: str
    """The event's digest: the same for every delivery of it, and for no other event."""


class FrontContext(Protocol):
    """What a stage with `FRONT_DOOR = True` gets: it meets events before anyone knows whose they are."""

    store: ObjectStore
    tenants: Directory
    bucket: str
    """The bucket that upload notifications must name."""
    key_prefix: str
    """What stands before our keys in that bucket; empty, or ending in `/`."""
    grace_seconds: float
    """How long after an upload an unknown tenant, or a picture that a manifest names, may still come to be."""
    slot_seconds: float
    """How long a job has its slot when nobody works on it."""
    spread: float
    """Seconds over which batches that begin together are spread."""
    video: VideoSettings
    log: logging.LoggerAdapter[logging.Logger]
    metrics: Metrics
    deadline: Deadline

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def pause(self, seconds: float) -> bool:
        """Wait; False, at once, when the process has to end."""
        ...

    def prices(self) -> Prices:
        """What jobs cost here, read once. Raises ConfigError."""
        ...

    def is_proven(self, event: Event) -> bool:
        """Whether an event of ours was made by this installation, so that its tenant is to be believed."""
        ...
