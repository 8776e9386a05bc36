"""Where a stage becomes a web application: settings read once, parts made once, wired here and nowhere else.

The stage is imported by name at run time; this module knows everything in shared and no stage.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from flask import Flask

from shared.audit.marks import Marks
from shared.audit.trail import Trail
from shared.errors import ConfigError
from shared.events import proof
from shared.serving import background, health, stage, tracing, web
from shared.serving.context import LazyModels, PriceList, StageSetup
from shared.serving.doors import DoorReceiver, Outbox
from shared.serving.idempotency import Ledger
from shared.serving.lifecycle import BEGIN, EXTENSION, Lifecycle, forks
from shared.serving.outcome import Outcomes
from shared.serving.patience import patiently
from shared.serving.receive import Receiver, Services
from shared.serving.slots import Slots
from shared.serving.stage import Stage
from shared.settings import ServingSettings, Settings
from shared.storage.open import open_store
from shared.telemetry.logs import stage_log
from shared.telemetry.metrics import PrometheusMetrics
from shared.telemetry.spans import Tracer, inside
from shared.tenancy import directory

if TYPE_CHECKING:
    from shared.net.fetch import Fetcher
    from shared.serving.edge import Edge
    from shared.serving.emitter import Emitter


def create(
    name: str,
    package: str = "functions",
    *,
    environ: Mapping[str, str] = os.environ,
    leave: Callable[[int], None] = os._exit,
) -> Flask:
    """The application of the stage `<package>/<name>/main.py`; its setup, if it has one, is already running, or waits
    for the worker under gunicorn, whose master may be the one that imports this (`--preload`).

    `name`: one stage, or several joined by `+` that share the process (see `fused`).
    `leave` ends the process when the setup fails. Raises ConfigError.
    """
    settings = Settings.from_environment(environ)
    tracer = tracing.open_tracer(settings.traces, settings.serving.service or name)
    with tracer.starting(), inside("import"):
        first, *others = [stage.load(part, package) for part in name.split("+")]
    metrics = PrometheusMetrics()
    services = _services(first, settings, metrics, tracer)
    every = [services, *(_beside(services, other) for other in others)]
    _check_sinks(every)
    serving = settings.serving
    app = web.build(serving.max_body_bytes)
    app.extensions[EXTENSION] = services.lifecycle
    health.add_routes(app, services.lifecycle, metrics)
    web.add_gate(app, services.lifecycle, Slots(serving.concurrency), health.ENDPOINTS)
    if others:
        from shared.serving import fused  # what a stage that runs alone need not import

        fused.mount(app, every, serving.handovers, serving.max_event_bytes)
    else:
        _add_work(app, services, settings)
    app.extensions[BEGIN] = lambda: _begin(every, leave, settings.models.gpu_wait_seconds)
    if not forks():
        app.extensions[BEGIN]()
    return app


def alone(name: str, package: str, settings: Settings) -> Services:
    """The parts of a stage, set up, for a process that serves nobody. Raises ConfigError, and what the setup does."""
    tracer = tracing.open_tracer(settings.traces, settings.serving.service or name)
    with tracer.starting():
        with inside("import"):
            loaded = stage.load(name, package)
        services = _services(loaded, settings, PrometheusMetrics(), tracer)
        _check_sinks([services])
        if setup := _setup(services):
            patiently(setup, settings.models.gpu_wait_seconds, services.lifecycle.waits)()
    services.lifecycle.ready()
    return services


def _services(loaded: Stage, settings: Settings, metrics: PrometheusMetrics, tracer: Tracer) -> Services:
    serving, store = settings.serving, open_store(settings.store.url)
    tenants = settings.tenants
    return Services(
        stage=loaded,
        store=store,
        tenants=directory.load(
            tenants.tenants, tenants.api_keys, tenants.webhook_secrets, tenants.folder, metrics, only=tenants.only
        ),
        proof=proof.read(serving.event_keys),
        trail=Trail(store, Marks(settings.privacy.audit_key)),
        ledger=Ledger(store, seconds=serving.lease_seconds),
        outcomes=Outcomes(store, loaded.name),
        lifecycle=Lifecycle(serving.timeout_seconds, told=partial(_ready, loaded.name, metrics, tracer)),
        models=LazyModels(settings.models, metrics),
        metrics=metrics,
        emitter=_emitter(serving),
        prices=PriceList(serving.prices),
        tracer=tracer,
        timeout=serving.timeout_seconds,
        slot_seconds=serving.slot_seconds,
        spread=serving.batch_spread_seconds,
        max_bytes=serving.max_event_bytes,
        video=settings.video,
    )


def _ready(stage_name: str, metrics: PrometheusMetrics, tracer: Tracer, seconds: float) -> None:
    if not gc.isenabled():  # gunicorn.conf turned it off
        gc.freeze()  # what is there now stays: no later collection has to walk through it
        gc.enable()
    metrics.observe("wake", seconds, stage=stage_name)
    tracer.ready()


def _beside(services: Services, other: Stage) -> Services:
    """The same parts for another stage of the process."""
    return replace(services, stage=other, outcomes=Outcomes(services.store, other.name))


def _check_sinks(every: Sequence[Services]) -> None:
    for services in every:
        if services.stage.fans_out and services.emitter is None:
            detail = f"The stage {services.stage.name} answers one event with several, and needs a sink for them."
            raise ConfigError(detail, context={"field": "K_SINK"})


def _emitter(serving: ServingSettings) -> Emitter | None:
    if not serving.sink:
        return None
    from shared.serving.emitter import Emitter  # urllib3 and tenacity: stages that answer with events need neither

    return Emitter(serving.sink, connections=serving.concurrency)


def _add_work(app: Flask, services: Services, settings: Settings) -> None:
    """The event path, and for the front door the HTTP API beside it."""
    loaded, limit = services.stage, settings.serving.max_event_bytes
    if loaded.handle is not None:
        web.add_events(app, Receiver(services, loaded.handle), limit)
        return
    assert loaded.door is not None
    receiver = DoorReceiver(services, loaded.door, settings.store)
    web.add_events(app, receiver, limit)
    if loaded.front_door:
        from shared.serving.front import Front, mount  # what the other stages need not import

        publish = Outbox(services).publish
        token, life = settings.tenants.notification_token, services.lifecycle
        edge = _edge(settings, services)
        fetcher = _fetcher(settings)
        front = Front(receiver.context, publish, token, limit, lambda: life.stopping, edge, fetcher, services.tracer)
        mount(app, front)


def _fetcher(settings: Settings) -> Fetcher:
    from shared.net.fetch import Bounds, Fetcher  # for the front door only

    fetch, most = settings.fetch, settings.serving.max_body_bytes
    return Fetcher(Bounds(float(fetch.seconds), most, at_once=fetch.at_once, plain_http=fetch.plain_http))


def _edge(settings: Settings, services: Services) -> Edge:
    from shared.serving.audited import FrontAudit  # for the front door only
    from shared.serving.edge import Edge
    from shared.serving.rates import Rates
    from shared.tenancy.tokens import open_tokens

    audit, rates = FrontAudit(services.trail, services.metrics), Rates(settings.rates, services.metrics)
    return Edge(open_tokens(settings.jwt), rates, settings.rates.proxies, audit)


def _begin(every: Sequence[Services], leave: Callable[[int], None], patience: float) -> None:
    lifecycle, setups = every[0].lifecycle, [setup for services in every if (setup := _setup(services))]
    if setups:
        with every[0].tracer.starting():
            lifecycle.load(patiently(lambda: _together(setups), patience, lifecycle.waits), leave)
    else:
        lifecycle.ready()


def _setup(services: Services) -> Callable[[], None] | None:
    setup = services.stage.setup
    context = StageSetup(services.models, stage_log(services.stage.name), services.prices)
    return None if setup is None else lambda: setup(context)


def _together(setups: Sequence[Callable[[], None]]) -> None:
    for running in [background.start("setup", setup) for setup in setups]:
        running.result()
