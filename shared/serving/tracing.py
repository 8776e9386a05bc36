"""The harness's spans: where a process's go, and what they say of a request or an event.

Knows the settings of traces and the event; OpenTelemetry's attribute names are those of its semantic conventions for
FaaS and CloudEvents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shared.events.event import Event
from shared.serving.lifecycle import STARTED
from shared.telemetry.sampling import sampler, unsampled
from shared.telemetry.spans import Open, Tracer, Wake
from shared.telemetry.trace import nearest, parse
from shared.trace_settings import TraceSettings

if TYPE_CHECKING:
    from shared.telemetry.exporting import Keeper

IDS = Tracer(unsampled)
"""Keeps no span."""


def open_tracer(settings: TraceSettings, service: str) -> Tracer:
    """`service`: the name under which this process's spans are kept."""
    if not settings.kept:
        return IDS
    from shared.telemetry.exporting import Exporter  # for processes that keep spans

    def make() -> Keeper:
        from shared.telemetry.sdk import Kept

        return Kept(service, settings.file)

    return Tracer(sampler(settings.sampler, settings.sampler_arg), Exporter(make), Wake(STARTED))


def of_event(tracer: Tracer, stage: str, event: Event, headers: Mapping[str, str]) -> Open:
    """The span in which a stage works on an event; `headers` of its delivery, by their lower-case names."""
    source, hop = str(event.extensions.get("traceparent", "")), headers.get("traceparent", "")
    caller = nearest(source, hop)
    links = [found for found in (parse(source),) if found is not None and found != caller]
    span = tracer.span(stage, caller, "consumer", links=links)
    span.note(
        faas__trigger="pubsub",
        faas__invocation_id=event.id,
        cloudevents__event_id=event.id,
        cloudevents__event_source=event.source,
        cloudevents__event_type=event.type,
        cloudevents__event_subject=event.subject,
        wakeswap__stage=stage,
        wakeswap__tenant=event.tenant,
        wakeswap__job=event.job,
    )
    return span


def of_request(tracer: Tracer, name: str, traceparent: str) -> Open:
    """The span of a request that starts or ends jobs. `name`: method and route; `traceparent`: the caller's."""
    span = tracer.span(name, parse(traceparent), "server")
    method, _, route = name.partition(" ")
    span.note(faas__trigger="http", http__request__method=method, http__route=route)
    return span
