"""Two tenants on one installation: globex, who has everything, and acme, who tries to get at it.

The real intake, a stage that uses the store it is handed, dead letter and notify, over one folder store that notes
what it is asked for; a broker on a socket takes what is published.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shared import records
from shared.events.codec import encode_binary, from_payload
from shared.events.event import Event, source_of, type_of
from shared.events.payloads import Job, ObjectRef, Rejection, Result
from shared.jobs.records import JobRecord
from shared.serving import app as serving
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.signing import signed
from tests.unit.jobs.world import picture
from tests.unit.serving.support import App
from tests.unit.serving.test_emitter import Broker, broker

ACME, GLOBEX = "acme", "globex"
ACME_KEY, GLOBEX_KEY = "key-of-acme-0123456789abcdef", "key-of-globex-0123456789abcd"
TOKEN = "token-of-the-bucket"
JWT_SECRET = "secret-of-the-issuer-0123456789abcdef"
ISSUER, AUDIENCE = "https://issuer.example", "wakeswap"
STATES = ("queued", "running", "succeeded", "rejected", "failed", "cancelled")
MARK = "TOPSECRET"
"""In everything of globex that an answer could carry away."""
_POLICY = {"max_concurrent": 1000, "max_batch": 1000, "jobs_per_minute": 100_000, "jobs_per_day": 1_000_000}
_TENANTS = {name: {"policy": _POLICY} for name in (ACME, GLOBEX)}
_CHANGING = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # ids
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
    "|00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]"  # traceparent
    "|test[.][0-9a-f]{64}"  # proof
    "|n[0-9]{7}",  # names that World.fresh gives
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Target:
    """At whom an attempt is aimed: by names of what is there, or by others of the same length."""

    tenant: str
    name: str
    """Stem of files, folders and templates."""
    jobs: Mapping[str, str]
    """By state."""

    def plain(self, text: str) -> str:
        """`text` without what tells this target from another, or one request from the next."""
        for own, shown in ((self.tenant, "<tenant>"), (self.name, "<name>")):
            for form in (own, own.upper(), wide(own), json.dumps(wide(own))[1:-1]):
                text = text.replace(form, shown)
        return _CHANGING.sub("<new>", text)


def _jobs(seed: str) -> dict[str, str]:
    return {state: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed} {state}")) for state in STATES}


REAL = Target(GLOBEX, "blueprint", _jobs("real"))
MISSING = Target(GLOBEX, "blackbird", _jobs("missing"))
"""The same tenant has nothing of these names."""
STRANGER = Target("globey", "blackbird", _jobs("stranger"))
"""There is no such tenant."""


def wide(text: str) -> str:
    """Full-width forms, which NFKC folds into ASCII."""
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


class Answer(NamedTuple):
    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


@dataclass(frozen=True)
class Seen:
    """Everything that one attempt made happen."""

    answers: tuple[Answer, ...]
    published: tuple[str, ...]
    asked: tuple[str, ...]
    """What the store was asked for, in order: equal lists are equal work."""

    def plain(self, target: Target) -> Seen:
        answers = tuple(
            Answer(status, tuple((name, target.plain(value)) for name, value in headers), target.plain(body))
            for status, headers, body in self.answers
        )
        return Seen(answers, tuple(map(target.plain, self.published)), self.asked)

    @property
    def text(self) -> str:
        return repr((self.answers, self.published))


class Noting(LocalStore):
    """A folder store that notes what it is asked for. Its clients share the list."""

    asked: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("get", "head", "put", "create", "replace", "delete", "list", "download", "link", "read_range"):
            Noting.asked.append(name)
        return super().__getattribute__(name)


@dataclass
class World:
    root: Path
    broker: Broker
    intake: App
    loader: App
    dead_letter: App
    notify: App
    store: LocalStore
    answers: list[Answer] = field(default_factory=list)
    serial: int = 0

    def call(self, method: str, path: str, key: str = ACME_KEY, **more: Any) -> None:
        headers = {"Authorization": f"Bearer {key}", **more.pop("headers", {})}
        sent = {name: value for name, value in headers.items() if value is not None}
        self._note(self.intake.client.open(path, method=method, headers=sent, **more))

    def deliver(self, app: App, event: Event) -> None:
        """An event as it is: whoever wants it believed signs it."""
        headers, body = encode_binary(event)
        self._note(app.client.post("/", headers=headers, data=body))

    def notify_of(self, *names: str, token: str = TOKEN) -> None:
        """What the bucket's queue says of objects with these keys, as they stand in a notification."""
        entries = [{"bucket": {"name": "wakeswap"}, "object": {"key": name, "size": 9, "eTag": "e"}} for name in names]
        body = {"Records": [{"eventName": "ObjectCreated:Put", "s3": entry} for entry in entries]}
        self.call("POST", "/events/s3", token, json=body)

    def fresh(self) -> str:
        """A name that nobody had before; all have one length."""
        self.serial += 1
        return f"n{self.serial:07}"

    def upload(self, name: str, data: bytes) -> str:
        """An object in acme's inbox; its key. Not counted: it comes past us."""
        key = f"tenants/{ACME}/inbox/{name}"
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return key

    def see(self, attempt: Any, target: Target) -> Seen:
        self.answers, before = [], len(self.broker.received)
        Noting.asked.clear()
        attempt(self, target)
        published = []
        for _, headers, body in self.broker.received[before:]:
            published.append(f"{sorted(headers.items())} {body.decode()}")
        return Seen(tuple(self.answers), tuple(published), tuple(Noting.asked))

    def belongings(self) -> dict[str, tuple[int, int, int]]:
        """Everything of globex; a file that is written anew has another identity, whatever is in it."""
        found = {}
        for path in (self.root / "tenants" / GLOBEX).rglob("*"):
            facts = path.stat()
            found[str(path)] = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        return found

    def strays(self) -> set[str]:
        """Tenants that have come to be."""
        return {path.name for path in (self.root / "tenants").iterdir()} - {ACME, GLOBEX}

    def _note(self, answer: Any) -> None:
        body = answer.data.decode("utf-8", "backslashreplace")
        self.answers.append(Answer(answer.status_code, tuple(answer.headers.to_wsgi_list()), body))


def job_of(target: Target, state: str = "queued", *, origin: str = "http", key: str = "") -> Job:
    ref = ObjectRef(key or f"tenants/{target.tenant}/inbox/{target.name}.jpg", "0" * 64, 10**9, "image/jpeg")
    return Job(target.jobs[state], (ref,), ref, origin=origin)


def event_of(payload: Job | Rejection | Result, tenant: str, identity: str, stage: str = "intake") -> Event:
    return Event(
        id=identity,
        source=source_of(stage),
        type=type_of(stage, payload.outcome),
        subject=payload.job,
        datacontenttype="application/json",
        extensions={"tenantid": tenant, "priority": "interactive"},
        data=from_payload(payload),
    )


@contextmanager
def world(root: Path) -> Iterator[World]:
    with broker() as server, pytest.MonkeyPatch.context() as patched:
        patched.setattr(serving, "open_store", lambda _: Noting(root))
        settings = {
            "K_SINK": server.address,
            "WAKESWAP_TENANTS": json.dumps(_TENANTS),
            "WAKESWAP_API_KEYS": f"{ACME}={ACME_KEY},{GLOBEX}={GLOBEX_KEY}",
            "WAKESWAP_NOTIFICATION_TOKEN": TOKEN,
            "WAKESWAP_JWT_SECRET": JWT_SECRET,
            "WAKESWAP_JWT_ISSUER": ISSUER,
            "WAKESWAP_JWT_AUDIENCE": AUDIENCE,
            **dict.fromkeys(("WAKESWAP_RATE_PER_KEY", "WAKESWAP_RATE_PER_ADDRESS", "WAKESWAP_AUTH_FAILURES"), "0"),
            "WAKESWAP_RATE_NOTIFICATIONS": "0",
        }
        intake, dead_letter, notify = (
            App(name, root, package="functions", **settings) for name in ("intake", "dead_letter", "notify")
        )
        loader = App("loader", root, **{**settings, "K_SINK": ""})
        made = World(root, server, intake, loader, dead_letter, notify, LocalStore(root))
        _furnish(made.store)
        _warm(made)
        yield made


def _furnish(store: LocalStore) -> None:
    """What globex has: uploads, a template, and a job in every state with all that belongs to it."""
    base, name = keys.prefix(GLOBEX), REAL.name
    data = picture(201) + MARK.encode()
    for place in (f"inbox/{name}.jpg", f"inbox/{name}/source.jpg", f"inbox/{name}/target.jpg",
                  f"templates/{name}/target.jpg"):  # fmt: skip
        store.put(base + place, data, content_type="image/jpeg")
    manifest = {"source": f"{name}.jpg", "target": f"{name}.jpg"}
    store.put(f"{base}inbox/{name}.job.json", json.dumps(manifest).encode())
    for state, job_id in REAL.jobs.items():
        _furnish_job(store, state, job_id, data)
    store.put(keys.system("dead-letter", f"{REAL.name}.json"), MARK.encode())


def _furnish_job(store: LocalStore, state: str, job_id: str, data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    source = ObjectRef(keys.job(GLOBEX, job_id, "input", "source.jpg"), digest, len(data), "image/jpeg")
    result = replace(source, key=keys.result(GLOBEX, f"{job_id}.jpg"))
    store.put(source.key, data, content_type="image/jpeg")
    record = JobRecord(Job(job_id, (source,), source, created="2026-11-30T00:00:00.000Z"), request=digest)
    store.put(keys.job(GLOBEX, job_id, "job.json"), records.dumps(records.write(record)))
    if state != "queued":
        work = {"owner": MARK, "expires": 0.0, "started": 1.0, "finished": 2.0, "woke": 0.0}
        store.put(keys.job(GLOBEX, job_id, "detect", "work.0.json"), json.dumps(work).encode())
    if state == "succeeded":
        store.put(result.key, data, content_type="image/jpeg")
        _end(store, job_id, "publish", Result(job_id, result, 64, 64, (), f"file:///{MARK}", "2030-01-01T00:00:00Z"))
    elif state == "cancelled":
        store.put(keys.job(GLOBEX, job_id, "cancelled.json"), b"{}")
    elif state in ("rejected", "failed"):
        fault = Rejection(job_id, "detect", "no_face_in_source", MARK, 422)
        _end(store, job_id, "detect", fault, state)


def _end(store: LocalStore, job_id: str, stage: str, payload: Result | Rejection, outcome: str = "") -> None:
    entry = {"type": type_of(stage, outcome or payload.outcome), "cause": "c", "data": records.write(payload)}
    store.put(keys.job(GLOBEX, job_id, "outcome.json"), records.dumps(entry))


def _warm(made: World) -> None:
    """What the first request and the first event of a process do once more than every later one."""
    key = made.upload("own.jpg", picture(5))
    made.call("POST", "/v1/jobs", json={"source": key, "target": key})
    assert made.answers[-1].status == 202, made.answers[-1]
    made.call("GET", "/v1/jobs")
    made.notify_of("tenants/acme/inbox/none.jpg")
    for app in (made.loader, made.notify, made.dead_letter):
        job = replace(job_of(STRANGER), job=f"job-{made.fresh()}")
        made.deliver(app, signed(event_of(job, ACME, made.fresh())))
