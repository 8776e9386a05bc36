"""Where a stage becomes a web application: settings read once, parts made once, wired here and nowhere else.

The stage is imported by name at run time; this module knows everything in shared and no stage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from flask import Flask

from shared.serving import health, stage, web
from shared.serving.context import LazyModels, StageSetup
from shared.serving.doors import DoorReceiver, Outbox
from shared.serving.idempotency import Ledger
from shared.serving.lifecycle import EXTENSION, Lifecycle
from shared.serving.outcome import Outcomes
from shared.serving.receive import Receiver, Services
from shared.serving.slots import Slots
from shared.serving.stage import Stage
from shared.settings import ServingSettings, Settings
from shared.storage.open import open_store
from shared.telemetry.logs import stage_log
from shared.telemetry.metrics import PrometheusMetrics
from shared.tenancy import directory

if TYPE_CHECKING:
    from shared.serving.emitter import Emitter


def create(
    name: str,
    package: str = "functions",
    *,
    environ: Mapping[str, str] = os.environ,
    leave: Callable[[int], None] = os._exit,
) -> Flask:
    """The application of the stage `<package>/<name>/main.py`; its setup, if it has one, is already running.

    `leave` ends the process when the setup fails. Raises ConfigError.
    """
    settings = Settings.from_environment(environ)
    loaded = stage.load(name, package)
    metrics = PrometheusMetrics()
    services = _services(loaded, settings, metrics)
    serving = settings.serving
    app = web.build(serving.max_body_bytes)
    app.extensions[EXTENSION] = services.lifecycle
    health.add_routes(app, services.lifecycle, metrics)
    web.add_gate(app, services.lifecycle, Slots(serving.concurrency), health.ENDPOINTS)
    _add_work(app, services, settings)
    _begin(services, leave)
    return app


def _services(loaded: Stage, settings: Settings, metrics: PrometheusMetrics) -> Services:
    serving, store = settings.serving, open_store(settings.store.url)
    tenants = settings.tenants
    return Services(
        stage=loaded,
        store=store,
        tenants=directory.load(tenants.tenants, tenants.api_keys, tenants.webhook_secrets),
        ledger=Ledger(store, seconds=serving.lease_seconds),
        outcomes=Outcomes(store, loaded.name),
        lifecycle=Lifecycle(serving.timeout_seconds),
        models=LazyModels(settings.models),
        metrics=metrics,
        emitter=_emitter(serving),
        timeout=serving.timeout_seconds,
        max_bytes=serving.max_event_bytes,
    )


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
        mount(app, Front(receiver.context, publish, token, limit, lambda: life.stopping))


def _begin(services: Services, leave: Callable[[int], None]) -> None:
    setup = services.stage.setup
    if setup is None:
        services.lifecycle.ready()
        return
    context = StageSetup(services.models, stage_log(services.stage.name))
    services.lifecycle.load(lambda: setup(context), leave)
