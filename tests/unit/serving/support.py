"""What the harness's tests share: a stage of tests/services as an app with a folder store, and events for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from flask import Flask
from werkzeug.test import TestResponse

from shared.events.codec import encode_binary, from_payload
from shared.events.event import Event, source_of, type_of
from shared.events.payloads import Job, ObjectRef, Payload
from shared.serving.app import create
from shared.serving.lifecycle import EXTENSION, Lifecycle
from shared.storage.local import LocalStore
from tests.signing import EVENT_KEYS, signed

JOB = "job-00000001"
PICTURE = ObjectRef("tenants/demo/inbox/a.png", "0" * 64, 1, "image/png")


def job(origin: str = "http", job_id: str = JOB) -> Job:
    return Job(job=job_id, source=(PICTURE,), target=PICTURE, origin=origin)


def event(
    payload: Payload | None = None, *, stage: str = "intake", event_id: str = "e-1", tenant: str = "demo"
) -> Event:
    """An event of `stage` that carries `payload` for `tenant`."""
    payload = payload or job()
    return Event(
        id=event_id,
        source=source_of(stage),
        type=type_of(stage, payload.outcome),
        subject=payload.job,
        datacontenttype="application/json",
        extensions={"tenantid": tenant} if tenant else {},
        data=from_payload(payload),
    )


class App:
    """A stage served in this process, called without a network; from tests.services unless it is the product's own."""

    def __init__(self, stage: str, root: Path, *, package: str = "tests.services", **environ: str) -> None:
        self.store = LocalStore(root)
        self.left: list[int] = []
        own = {"WAKESWAP_TENANTS": '{"demo": {}}', "WAKESWAP_EVENT_KEYS": EVENT_KEYS}
        settings = {"WAKESWAP_STORE_URL": f"file:{root}", **own, **environ}
        self.flask: Flask = create(stage, package, environ=settings, leave=self.left.append)
        self.lifecycle: Lifecycle = self.flask.extensions[EXTENSION]
        self.client = self.flask.test_client()

    def is_ready(self) -> bool:
        return self.client.get("/health/readiness").status_code == 200

    def deliver(self, sent: Event, **headers: str) -> TestResponse:
        """As its stage signs it, unless the test has given it another proof."""
        fields, body = encode_binary(sent if "proof" in sent.extensions else signed(sent))
        return self.client.post("/", headers={**fields, **headers}, data=body)

    def run(self, origin: str, event_id: str = "e-1") -> TestResponse:
        """Deliver a job whose `origin` tells the stage what to do."""
        return self.deliver(event(job(origin), event_id=event_id))

    def names(self, prefix: str) -> list[str]:
        return [entry.key for entry in self.store.list(prefix).objects]


def until(condition: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait for `condition()` to be true; fail when it is not in time."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "never came true"
        time.sleep(0.005)
