"""One event, hop by hop: decoded, placed with its tenant, taken once, handled, answered.

The way of every stage that takes payloads; `doors` is that of the stages that take raw events. Knows the contract
and the harness's own parts; no web framework.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from logging import getLogger
from typing import TYPE_CHECKING

from shared.audit import journal
from shared.audit.lines import Line, ended
from shared.audit.trail import Trail
from shared.context import Metrics
from shared.errors import RejectedError, RequestError, WakeswapError
from shared.events import codec, contract
from shared.events.event import Event, source_of
from shared.events.payloads import TERMINAL, Payload, Rejection
from shared.events.proof import EventKeys
from shared.jobs import holds
from shared.jobs.records import timestamp
from shared.jobs.slots import Keeper
from shared.serving import measuring, tracing
from shared.serving.answers import NOTHING, PUBLISHED, Reply, refusal
from shared.serving.context import EventContext, EventDeadline, JobModels, LazyModels, PriceList
from shared.serving.idempotency import Beat, Ledger, nothing
from shared.serving.lifecycle import Lifecycle
from shared.serving.outcome import Outcomes
from shared.serving.stage import PAYLOADS, Handle, Stage
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.storage.scoped import TenantStore
from shared.telemetry import spans
from shared.telemetry.logs import bind, stage_log
from shared.telemetry.spans import Tracer
from shared.tenancy.directory import Directory
from shared.tenancy.tenant import Tenant
from shared.vision import device_time

if TYPE_CHECKING:
    from shared.serving.emitter import Emitter

log = getLogger(__name__)


@dataclass(frozen=True)
class Services:
    """What one process works with, made once in `app`."""

    stage: Stage
    store: ObjectStore
    tenants: Directory
    proof: EventKeys
    ledger: Ledger
    trail: Trail
    outcomes: Outcomes
    lifecycle: Lifecycle
    models: LazyModels
    metrics: Metrics
    emitter: Emitter | None
    prices: PriceList
    tracer: Tracer
    timeout: float
    """Seconds one event may take."""
    slot_seconds: float
    """How long a job has its slot when no stage works on it."""
    spread: float
    """Seconds over which batches that begin together are spread."""
    max_bytes: int
    """Largest event taken in."""

    def deadline(self, ends: float = math.inf) -> EventDeadline:
        """For an event that comes in now and must be done by `ends` (monotonic) in any case."""
        return EventDeadline(min(time.monotonic() + self.timeout, ends), self.lifecycle)


@dataclass(frozen=True)
class Delivery:
    """A decoded event with everything that its handling needs."""

    event: Event
    payload: Payload
    tenant: Tenant
    traceparent: str
    deadline: EventDeadline


def answer(
    services: Services, headers: Mapping[str, str], body: bytes, deliver: Callable[[Event, str], Reply]
) -> Reply:
    """Decode and deliver; every error of the tree becomes the answer that a broker understands.

    `headers` by their lower-case names; `deliver` gets the event and the traceparent of this stage's span.
    """
    begun, stage = time.monotonic(), services.stage.name
    try:
        event = codec.decode(headers, body, limit=services.max_bytes)
    except RequestError as error:
        code, reply = _refuse(error)
    else:
        fields = {"stage": stage, "event": event.id, "tenant": event.tenant, "job": event.job}
        with tracing.of_event(services.tracer, stage, event, headers) as span, bind(**span.ids(), **fields):
            try:
                code, reply = "done", deliver(event, str(span.trace))
            except WakeswapError as error:
                span.failed_with(error)
                code, reply = _refuse(error)
    services.metrics.count("events", stage=stage, code=code)
    services.metrics.observe("event", time.monotonic() - begun, stage=stage)
    return reply


def _refuse(error: WakeswapError) -> tuple[str, Reply]:
    log.warning("event refused: %s", error, extra={"code": error.code})
    return error.code, refusal(error)


def once(
    services: Services, key: str, work: Callable[[], Reply], beat: Beat = nothing, tenant: Tenant | None = None
) -> Reply:
    """The reply of `work`, done now or stored before. Whatever goes wrong frees the work for the next delivery.

    `beat` is called beside the work, at once and every now and then; `tenant`: whose work it is.
    """
    taken = services.ledger.take(key)
    if isinstance(taken, Reply):
        log.info("replayed")
        return taken
    with ExitStack() as undo:
        undo.callback(taken.release)
        with taken.kept(beat), device_time.measured() as device:
            try:
                reply = work()
            finally:
                measuring.device(services.metrics, services.stage.name, device.seconds(), tenant)
        reply = taken.finish(reply, woke=services.lifecycle.first_wake(), device=device.seconds())
        undo.pop_all()
    return reply


@dataclass(frozen=True)
class Receiver:
    """Delivers events to a stage that takes payloads."""

    services: Services
    handle: Handle

    def __call__(self, headers: Mapping[str, str], body: bytes, ends: float = math.inf) -> Reply:
        """`ends`: monotonic time by which the answer must be there, where others share this event's time."""
        deadline = self.services.deadline(ends)
        return answer(self.services, headers, body, lambda event, span: self._deliver(event, span, deadline))

    def _deliver(self, event: Event, traceparent: str, deadline: EventDeadline) -> Reply:
        services = self.services
        if event.source == source_of(services.stage.name):
            return NOTHING  # a Trigger that matches our own replies must not make a loop
        payload = codec.to_payload(event, services.stage.payload_of(event))
        services.proof.verify(event)  # from here on its tenant is believed
        delivery = Delivery(event, payload, services.tenants.accepted(event.tenant), traceparent, deadline)
        key = keys.work(delivery.tenant.name, payload.job, services.stage.name, event.digest)
        if services.outcomes.cancelled(delivery.tenant.name, payload.job):
            return NOTHING
        slot = Keeper(services.store, delivery.tenant.name, payload.job, services.slot_seconds)
        return once(services, key, lambda: self._measured(delivery), slot, delivery.tenant)

    def _measured(self, delivery: Delivery) -> Reply:
        services = self.services
        with measuring.work(services.metrics, services.stage.name, delivery.event, delivery.tenant):
            return self._work(delivery)

    def _work(self, delivery: Delivery) -> Reply:
        services, event = self.services, delivery.event
        with journal.opened() as decided:
            payload = self._handle(delivery)
        if payload is not None:
            payload = services.outcomes.settle(delivery.tenant.name, payload, event.digest)
        self._record(delivery, decided, payload)
        if payload is None:
            return NOTHING
        reply = services.proof.sign(
            contract.reply(services.stage.name, event, payload, traceparent=delivery.traceparent)
        )
        if services.emitter is not None:
            services.emitter.publish(reply)
            return PUBLISHED
        headers, body = codec.encode_binary(reply)
        return Reply(200, tuple(headers.items()), body)

    def _handle(self, delivery: Delivery) -> Payload | None:
        name, job = self.services.stage.name, delivery.payload.job
        ctx = self._context(delivery)

        def work() -> Payload | None:
            with spans.inside("work"):
                payload = self.handle(delivery.payload, ctx)
            if payload is not None and not (isinstance(payload, PAYLOADS) and payload.job == job):
                raise TypeError(f"{name} must return a payload of the same job, or None.")
            return payload

        try:
            return self.services.lifecycle.run(work)
        except holds.ReviewNeededError as error:
            log.info("held: a person has to look", extra={"code": error.code})
            self._hold(delivery, error)
            return None
        except RejectedError as error:
            log.info("rejected: %s", error, extra={"code": error.code})
            measuring.rejected(self.services.metrics, name, error.code, delivery.tenant)
            return Rejection(job, name, error.code, error.detail, error.status, error.context)

    def _record(self, delivery: Delivery, decided: list[Line], payload: Payload | None) -> None:
        """What was decided goes on record before anyone hears of it; where that fails, the event comes again."""
        services, event, job = self.services, delivery.event, delivery.payload.job
        if isinstance(payload, TERMINAL):
            decided.append(ended(payload, services.stage.name, services.trail.marks))
        services.trail.write(delivery.tenant.name, job, f"{services.stage.name}.{event.digest}", event.time, decided)

    def _hold(self, delivery: Delivery, error: holds.ReviewNeededError) -> None:
        services, checks = self.services, error.context["checks"]
        holds.keep(
            services.store,
            holds.Hold(
                tenant=delivery.tenant.name,
                job=delivery.payload.job,
                stage=services.stage.name,
                checks=tuple(map(str, checks)) if isinstance(checks, list) else (),
                since=timestamp(time.time()),
                event=codec.encode_structured(delivery.event)[1].decode(),
            ),
        )
        services.outcomes.release(delivery.tenant.name, delivery.payload.job)  # a person may take days

    def _context(self, delivery: Delivery) -> EventContext:
        services, tenant = self.services, delivery.tenant
        return EventContext(
            storage=TenantStore(services.store, tenant.name, delivery.payload.job, services.stage.name),
            models=JobModels(services.models, tenant),
            tenant=tenant,
            log=stage_log(services.stage.name),
            metrics=services.metrics,
            deadline=delivery.deadline,
        )
