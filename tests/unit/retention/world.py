"""A tenant's store with jobs of every age, and retention run over it as the command does."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from infra.retention.due import Terms
from infra.retention.ending import Endings
from infra.retention.proving import Proof, prove
from infra.retention.run import Report, Run
from shared import records as text
from shared.audit.marks import Marks
from shared.audit.trail import Trail
from shared.events import proof
from shared.events.event import Event
from shared.events.payloads import Failure, Job, ObjectRef, Result
from shared.jobs import records
from shared.jobs.records import JobRecord, timestamp
from shared.serving.outcome import Outcomes
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.tenancy.tenant import Policy
from tests.signing import EVENT_KEYS
from tests.unit.jobs.world import picture

HOUR = 3600.0
AUDIT_KEY = "the-audit-key-of-the-tests-0123456789"
POLICY = Policy(keep_inputs_hours=24, keep_results_hours=24 * 30)


@dataclass
class World:
    root: Path
    now: float = field(default_factory=time.time)
    told: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = LocalStore(self.root)
        self.trail = Trail(self.store, Marks(AUDIT_KEY), lambda: self.now)

    def put(self, key: str, data: bytes = b"x", *, age: float) -> str:
        """An object that was written `age` hours ago."""
        self.store.put(key, data)
        return self.date(key, age)

    def date(self, key: str, age: float) -> str:
        when = self.now - age * HOUR
        data, info = self.store.get(key)
        os.utime(self.root / key, (when, when))
        assert data is not None
        assert info.size == len(data)
        return key

    def job(self, job: str, age: float, *, ended: float | None = None, upload: str = "", replay: bool = False) -> str:
        """Taken in `age` hours ago, over HTTP or out of the inbox, and ended `ended` hours ago; its pictures,
        intermediates and result lie where the stages put them.
        """
        keys_of = [keys.inbox("demo", f"{upload}/{role}.jpg") for role in ("source", "target")] if upload else [
            keys.job("demo", job, "input", f"{role}-0") for role in ("source", "target")
        ]  # fmt: skip
        refs = [self._picture(key, index, age) for index, key in enumerate(keys_of)]
        made = Job(job, (refs[0],), refs[1], created=timestamp(self.now - age * HOUR), origin="upload")
        records.create(self.store, "demo", JobRecord(made))
        self.date(keys.job("demo", job, "job.json"), age)
        self.put(keys.job("demo", job, "detect", "landmarks.npz"), age=age)
        self.put(keys.job("demo", job, "detect", "work.0123.json"), b"{}", age=age)
        if ended is not None:
            self.end(job, ended)
        return job

    def end(self, job: str, age: float) -> None:
        key = self.put(keys.result("demo", f"{job}.jpg"), picture(9), age=age)
        image = ObjectRef(key, "0" * 64, len(picture(9)), "image/jpeg")
        result = Result(job, image, 64, 64, (), "file:///x", "2030-01-01T00:00:00Z")
        assert Outcomes(self.store, "publish").settle("demo", result, "cause")
        self.date(keys.job("demo", job, "outcome.json"), age)

    def fail(self, job: str, age: float) -> None:
        failure = Failure(job, "swap", "x", "y", "")
        assert Outcomes(self.store, "dead_letter").settle("demo", failure, "cause")
        self.date(keys.job("demo", job, "outcome.json"), age)

    def _picture(self, key: str, shade: int, age: float) -> ObjectRef:
        if not (self.root / key).exists():
            self.put(key, picture(shade), age=age)
        return ObjectRef(key, hashlib.sha256(picture(shade)).hexdigest(), len(picture(shade)), "image/jpeg")

    def endings(self, hours: int = 336) -> Endings:
        return Endings(self.store, self.trail, proof.read(EVENT_KEYS), self.told.append, hours)

    def run(self, *, dry: bool = False, policy: Policy = POLICY) -> Report:
        self.endings().resume("demo")
        end = self.endings().end
        terms = Terms.of(policy, 336)
        return Run(self.store, self.trail, "demo", terms, self.now, lambda job: end("demo", job), dry).all()

    def prove(self, job: str) -> Proof:
        return prove(self.store, self.trail, "demo", job)

    def names(self, prefix: str = "") -> set[str]:
        return {info.key for info in self.store.list(prefix).objects}

    def data(self) -> set[str]:
        """Everything but audit and records."""
        return {key for key in self.names("tenants/") if not key.endswith(".json")}

    def lines(self) -> list[dict[str, object]]:
        found = []
        for key in self.names("system/audit/"):
            found += [dict(text.loads(line)) for line in self.store.get(key)[0].splitlines()]  # type: ignore[arg-type,call-overload]
        return found
