"""The HTTP API on flask's test client: real store, real routes; a list stands for the broker."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from shared import records
from shared.errors import BrokerUnavailableError
from shared.events.event import type_of
from shared.events.payloads import Failure, Job, ObjectRef, Rejection, Result
from shared.jobs.accepted import Accepted
from shared.net.fetch import Fetcher
from shared.serving import front, web
from shared.serving.edge import Edge
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.unit.jobs.world import World, picture

TOKEN = "token-of-the-bucket"
MAX_BODY = 2_000_000


@dataclass
class Broker:
    """Takes what is published, or is down."""

    events: list[Accepted] = field(default_factory=list)
    traceparents: list[str] = field(default_factory=list)
    down: bool = False

    def publish(self, accepted: Accepted, traceparent: str) -> None:
        if self.down:
            raise BrokerUnavailableError
        self.events.append(accepted)
        self.traceparents.append(traceparent)


class Api:
    def __init__(
        self, root: Path, token: str = TOKEN, edge: Edge | None = None, fetcher: Fetcher | None = None
    ) -> None:
        self.world = World(LocalStore(root / "objects"))
        self.broker = Broker()
        self.ending = threading.Event()
        self.app: Flask = web.build(MAX_BODY)
        stopping = self.ending.is_set
        outside = edge or Edge(), fetcher or Fetcher()
        parts = front.Front(lambda: self.world, self.broker.publish, token, 100_000, stopping, *outside)
        front.mount(self.app, parts)
        self.client = self.app.test_client()

    def call(self, method: str, path: str, tenant: str = "demo", **more: Any) -> TestResponse:
        headers = {"Authorization": f"Bearer key-of-{tenant}-0123456789", **more.pop("headers", {})}
        return self.client.open(path, method=method, headers=headers, **more)

    def send(self, *sources: bytes, target: bytes | None = None, tenant: str = "demo", **more: Any) -> TestResponse:
        """POST /v1/jobs with pictures; `options` and `headers` as keywords."""
        data: dict[str, Any] = {
            "source": [(io.BytesIO(data), f"s{index}.jpg") for index, data in enumerate(sources or (picture(1),))],
            "target": (io.BytesIO(picture(2) if target is None else target), "t.jpg"),
        }
        if "options" in more:
            data["options"] = json.dumps(more.pop("options"))
        return self.call("POST", "/v1/jobs", tenant, data=data, content_type="multipart/form-data", **more)

    def end(self, job: str, payload: Result | Rejection | Failure, tenant: str = "demo") -> None:
        """Write the job's end as the harness does."""
        stage = "publish" if isinstance(payload, Result) else payload.stage
        entry = {"type": type_of(stage, payload.outcome), "cause": "c", "data": records.write(payload)}
        self.world.store.put(keys.job(tenant, job, "outcome.json"), records.dumps(entry))

    def finish(self, job: str, tenant: str = "demo") -> bytes:
        """Let the job end well; its picture's bytes."""
        data = picture(77)
        key = keys.result(tenant, f"{job}.jpg")
        self.world.store.put(key, data, content_type="image/jpeg", metadata={"wakeswap-job": job})
        image = ObjectRef(key, "0" * 64, len(data), "image/jpeg")
        self.end(job, Result(job, image, 64, 64, (), "file:///x", "2030-01-01T00:00:00Z"), tenant)
        return data

    @property
    def jobs(self) -> list[Job]:
        return [entry.payload for entry in self.broker.events if isinstance(entry.payload, Job)]


def code(response: TestResponse) -> tuple[int, str]:
    """Status and code of a problem."""
    assert response.content_type == "application/problem+json"
    body = response.get_json(force=True)
    assert body["status"] == response.status_code
    return response.status_code, str(body["code"])
