"""One event, hop by hop: decoded, placed with its tenant, taken once, handled, answered.

The way of every stage that takes payloads; `doors` is that of the stages that take raw events. Knows the contract
and the harness's own parts; no web framework.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
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
from shared.serving.watch import JobOverError, Watch
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.storage.scoped import TenantStore
from shared.telemetry import spans
from shared.telemetry.logs import bind, stage_log
from shared.telemetry.spans import Tracer
from shared.tenancy.directory import Directory
from shared.tenancy.tenant import Tenant
from shared.video_settings import VideoSettings
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
    video: VideoSettings

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

    @property
    def is_part(self) -> bool:
        """Whether it is about a part of a job, or work as long as a video is: then it may be in vain meanwhile."""
        return self.event.extensions.get("media", contract.IMAGE) != contract.IMAGE


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
        tenant, job = services.tenants.accepted(event.tenant), payload.job
        delivery = Delivery(event, payload, tenant, traceparent, deadline)
        over = partial(services.outcomes.over, tenant.name, job, event.digest)
        if over() if delivery.is_part else services.outcomes.cancelled(tenant.name, job):
            return NOTHING
        beat: Beat = Keeper(services.store, tenant.name, job, services.slot_seconds)
        if delivery.is_part:
            watch = Watch(over)
            delivery = replace(delivery, deadline=replace(deadline, watch=watch))
            beat = partial(_both, watch, beat)
        key = keys.work(tenant.name, job, services.stage.name, event.digest)
        return once(services, key, lambda: self._measured(delivery), beat, tenant)

    def _measured(self, delivery: Delivery) -> Reply:
        services = self.services
        with measuring.work(services.metrics, services.stage.name, delivery.event, delivery.tenant):
            return self._work(delivery)

    def _work(self, delivery: Delivery) -> Reply:
        services, event = self.services, delivery.event
        with journal.opened() as decided:
            made = self._handle(delivery)
        payloads = services.outcomes.settle_all(delivery.tenant.name, made, event.digest)
        self._record(delivery, decided, payloads)
        stage, span = services.stage.name, delivery.traceparent
        replies = [services.proof.sign(contract.reply(stage, event, one, traceparent=span)) for one in payloads]
        return self._answer(replies)

    def _answer(self, replies: Sequence[Event]) -> Reply:
        """Published one by one where there is a sink: a crash between two makes the repeat send both, the ids being
        the same again."""
        if not replies:
            return NOTHING
        if self.services.emitter is not None:
            for reply in replies:
                self.services.emitter.publish(reply)
            return PUBLISHED
        (reply,) = replies
        headers, body = codec.encode_binary(reply)
        return Reply(200, tuple(headers.items()), body)

    def _handle(self, delivery: Delivery) -> tuple[Payload, ...]:
        name, job = self.services.stage.name, delivery.payload.job
        ctx = self._context(delivery)

        def work() -> tuple[Payload, ...]:
            if not isinstance(delivery.payload, TERMINAL):  # an end is told to whoever it is about, wherever it came
                self.services.tenants.admit(delivery.tenant)
            with spans.inside("work"):
                made = self.handle(delivery.payload, ctx)
            return _several(made, self.services.stage, job)

        try:
            return self.services.lifecycle.run(work)
        except JobOverError as error:
            log.info("stopped: the job is over", extra={"code": error.code})
            self.services.outcomes.cancelled(delivery.tenant.name, job)  # what was made since is deleted as well
            return ()
        except holds.ReviewNeededError as error:
            log.info("held: a person has to look", extra={"code": error.code})
            self._hold(delivery, error)
            return ()
        except RejectedError as error:
            log.info("rejected: %s", error, extra={"code": error.code})
            measuring.rejected(self.services.metrics, name, error.code, delivery.tenant)
            return (Rejection(job, name, error.code, error.detail, error.status, error.context),)

    def _record(self, delivery: Delivery, decided: list[Line], payloads: tuple[Payload, ...]) -> None:
        """What was decided goes on record before anyone hears of it; where that fails, the event comes again."""
        services, event, job = self.services, delivery.event, delivery.payload.job
        for payload in payloads:
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
            video=services.video,
            cause=delivery.event.digest,
        )


def _both(first: Beat, second: Beat) -> None:
    first()
    second()


def _several(made: Payload | tuple[Payload, ...] | None, stage: Stage, job: str) -> tuple[Payload, ...]:
    """What a stage has returned, as a tuple. Raises TypeError for what it must not return."""
    payloads = made if isinstance(made, tuple) else () if made is None else (made,)
    if not all(isinstance(one, PAYLOADS) and one.job == job for one in payloads):
        raise TypeError(f"{stage.name} must return payloads of the same job, or None.")
    if len(payloads) > 1 and (not stage.fans_out or any(isinstance(one, TERMINAL) for one in payloads)):
        raise TypeError(f"{stage.name} must return one payload, or say FANS_OUT and return none that ends the job.")
    return payloads
