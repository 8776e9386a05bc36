"""Stages that take raw events, from outside or from the dead letter: they yield events to publish, one by one.

Knows the contract and the harness's own parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

from shared.audit import lines
from shared.errors import BrokerUnavailableError
from shared.events import contract
from shared.events.event import Event
from shared.events.payloads import TERMINAL, Job, Payload, Rejection
from shared.jobs.accepted import Accepted
from shared.jobs.records import OUTCOME, timestamp
from shared.rejections import UnknownTenantError
from shared.serving import measuring
from shared.serving.answers import NOTHING, PUBLISHED, Reply
from shared.serving.context import DoorContext
from shared.serving.receive import Services, answer, once
from shared.serving.stage import Door
from shared.settings import StoreSettings
from shared.storage import keys
from shared.telemetry import spans, trace
from shared.telemetry.logs import stage_log
from shared.telemetry.spans import Open
from shared.tenancy.tenant import Tenant

FOLDER_BUCKET = "wakeswap"
"""The bucket that notifications about a folder store name."""


@dataclass(frozen=True)
class Outbox:
    """Publishes what a door accepted; the HTTP API uses it too."""

    services: Services

    def publish(self, accepted: Accepted, traceparent: str = "") -> None:
        """Return when the broker has it, or the job has ended otherwise. Raises BrokerUnavailableError."""
        services = self.services
        if services.emitter is None:
            raise BrokerUnavailableError("This process has no K_SINK.")
        payload = services.outcomes.settle(accepted.tenant, accepted.payload, accepted.cause)
        if payload is not None:
            self._record(accepted, payload)
            with self._span(accepted) as span:
                self._send(accepted, payload, str(span.trace) if span else traceparent)

    def _send(self, accepted: Accepted, payload: Payload, traceparent: str) -> None:
        services, stage = self.services, self.services.stage.name
        assert services.emitter is not None
        tenant = self._tenant(accepted)
        if isinstance(payload, Rejection):
            measuring.rejected(services.metrics, stage, payload.code, tenant)
        wake = tenant.policy.wake if tenant else "none"
        event = contract.first(stage, accepted.tenant, payload, accepted.cause, wake=wake, traceparent=traceparent)
        services.emitter.publish(services.proof.sign(event))

    def _tenant(self, accepted: Accepted) -> Tenant | None:
        """None: there is none of that name, which may be just what is to be told."""
        with suppress(UnknownTenantError):
            return self.services.tenants.get(accepted.tenant)
        return None

    def _span(self, accepted: Accepted) -> AbstractContextManager[Open | None]:
        """Of a job that waited: it goes on in its own trace, whoever's end made room for it."""
        if not accepted.waited:
            return nullcontext()
        now = spans.current()
        caller = trace.parse(accepted.traceparent)
        return self.services.tracer.span("leave the line", caller, "producer", links=[now] if now else [])

    def _record(self, accepted: Accepted, payload: Payload) -> None:
        """On record before the event is out: a repeat, of whichever day, finds the day of the job or of its end."""
        trail, stage, tenant = self.services.trail, self.services.stage.name, accepted.tenant
        if isinstance(payload, Job):
            line = lines.accepted(payload, accepted.by or f"door:{payload.origin}", trail.marks)
            trail.write(tenant, payload.job, lines.ACCEPTED, payload.created, [line])
        elif isinstance(payload, TERMINAL):
            when = timestamp(trail.store.head(keys.job(tenant, payload.job, OUTCOME)).modified)
            trail.write(tenant, payload.job, f"{stage}.ended", when, [lines.ended(payload, stage, trail.marks)])


@dataclass(frozen=True)
class DoorReceiver:
    """Delivers events to a stage that takes them raw."""

    services: Services
    door: Door
    store: StoreSettings

    def __call__(self, headers: Mapping[str, str], body: bytes) -> Reply:
        return answer(self.services, headers, body, self._deliver)

    def context(self) -> DoorContext:
        services = self.services
        bucket, prefix = bucket_of(self.store.url)
        return DoorContext(
            store=services.store,
            tenants=services.tenants,
            bucket=bucket,
            key_prefix=prefix,
            grace_seconds=self.store.upload_grace_seconds,
            slot_seconds=services.slot_seconds,
            spread=services.spread,
            video=services.video,
            log=stage_log(services.stage.name),
            metrics=services.metrics,
            deadline=services.deadline(),
            proof=services.proof,
            lifecycle=services.lifecycle,
            prices=services.prices,
        )

    def _deliver(self, event: Event, traceparent: str) -> Reply:
        if event.kind is not None and not self.services.stage.keeps_all:
            self.services.proof.verify(event)  # events of others have another origin: their door looks at that
        services, repeatable = self.services, self.services.stage.repeatable

        def work() -> Reply:
            with measuring.work(services.metrics, services.stage.name, event):
                return services.lifecycle.run(lambda: self._pass(event, traceparent))

        if repeatable is not None and repeatable(event):
            return work()
        return once(services, keys.system("work", services.stage.name, f"{event.digest}.json"), work)

    def _pass(self, event: Event, traceparent: str) -> Reply:
        outbox, reply = Outbox(self.services), NOTHING
        for accepted in self.door(event, self.context()):
            outbox.publish(accepted, traceparent)
            reply = PUBLISHED
        return reply


def bucket_of(url: str) -> tuple[str, str]:
    """Bucket and key prefix of a store, as upload notifications name them."""
    if not url.startswith("s3://"):
        return FOLDER_BUCKET, ""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""
