"""A job waits for a person: kept by the harness, decided once, carried out exactly once whatever crashes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shared.audit.trail import Trail
from shared.errors import BrokerUnavailableError, NotFoundError
from shared.events import proof
from shared.events.codec import decode
from shared.events.event import Event
from shared.jobs import holds, records, views
from shared.jobs.holds import APPROVED, REJECTED, ReviewDecidedError
from shared.jobs.records import JobRecord
from shared.serving.reviewing import Reviews
from tests.signing import EVENT_KEYS
from tests.unit.serving.support import JOB, App, event, job


@dataclass
class Desk:
    """A stage that asks, and whoever decides; what is published is kept."""

    app: App
    published: list[Event] = field(default_factory=list)
    down: bool = False

    def publish(self, sent: Event) -> None:
        if self.down:
            raise BrokerUnavailableError
        self.published.append(sent)

    @property
    def reviews(self) -> Reviews:
        store, keys = self.app.store, proof.read(EVENT_KEYS)
        return Reviews(store, Trail(store), keys, self.publish, lambda: 1_800_000_000.0)

    def status(self) -> str:
        return views.view(self.app.store, "demo", JOB).status


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    app = App("asking", tmp_path)
    records.create(app.store, "demo", JobRecord(job()))
    return Desk(app)


def ask(desk: Desk, event_id: str = "e-1") -> Event:
    sent = event(event_id=event_id)
    assert desk.app.deliver(sent).status_code == 204
    return sent


def test_the_event_is_kept_nothing_is_answered_and_the_job_is_in_review(desk: Desk) -> None:
    sent = ask(desk)
    (hold,) = holds.pending(desk.app.store)
    assert (hold.tenant, hold.job, hold.stage, hold.checks) == ("demo", JOB, "asking", ("nsfw",))
    kept = hold.original()
    assert (kept.id, kept.source, kept.type, kept.data) == (sent.id, sent.source, sent.type, sent.data)
    assert desk.status() == "in_review"
    assert desk.app.deliver(sent).status_code == 204, "a repeat changes nothing"
    assert len(holds.pending(desk.app.store)) == 1


def test_approved_it_goes_on_as_another_event_that_the_stage_believes(desk: Desk) -> None:
    sent = ask(desk)
    (hold,) = desk.reviews.find(JOB)
    verdict = desk.reviews.decide(hold, APPROVED, "ann", "a statue")
    assert (verdict.verdict, verdict.by, verdict.note, verdict.checks) == ("approved", "ann", "a statue", ("nsfw",))
    (again,) = desk.published
    assert again.id != sent.id
    assert (again.source, again.type, again.subject, again.data) == (sent.source, sent.type, sent.subject, sent.data)
    assert desk.status() == "running"
    assert holds.pending(desk.app.store) == []
    answer = desk.app.deliver(again)
    assert answer.status_code == 200
    assert decode(dict(answer.headers), answer.data, limit=10**6).type == "dev.wakeswap.asking.completed.v1"


def test_rejected_it_ends_with_one_rejection(desk: Desk) -> None:
    ask(desk)
    (hold,) = desk.reviews.find(JOB)
    desk.reviews.decide(hold, REJECTED, "bob")
    (end,) = desk.published
    assert end.type == "dev.wakeswap.asking.rejected.v1"
    assert proof.read(EVENT_KEYS).proves(end)
    assert isinstance(end.data, dict)
    assert (end.data["code"], end.data["context"]) == ("content_refused", {"checks": ["nsfw"], "review": True})
    assert desk.status() == "rejected"
    assert desk.app.deliver(event(event_id="e-1")).status_code == 204


def test_of_two_persons_the_first_decides(desk: Desk) -> None:
    ask(desk)
    (hold,) = desk.reviews.find(JOB)
    desk.reviews.decide(hold, APPROVED, "ann")
    with pytest.raises(ReviewDecidedError, match="ann has approved"):
        desk.reviews.decide(hold, REJECTED, "bob")
    assert len(desk.published) == 1
    assert desk.status() == "running"


def test_fifty_at_once_decide_one_way(desk: Desk) -> None:
    ask(desk)
    (hold,) = desk.reviews.find(JOB)
    start = threading.Barrier(50)

    def decide(number: int) -> str:
        verdict = (APPROVED, REJECTED)[number % 2]
        start.wait()
        try:
            return desk.reviews.decide(hold, verdict, str(number)).verdict
        except ReviewDecidedError as error:
            return str(error.context["verdict"])

    with ThreadPoolExecutor(50) as threads:
        told = set(threads.map(decide, range(50)))
    assert len(told) == 1
    assert len({sent.id for sent in desk.published}) == 1, "a broker drops a repeated id"


@pytest.mark.parametrize("verdict", [APPROVED, REJECTED])
def test_a_broker_that_is_down_leaves_the_verdict_to_be_carried_out_later(desk: Desk, verdict: str) -> None:
    ask(desk)
    (hold,) = desk.reviews.find(JOB)
    desk.down = True
    with pytest.raises(BrokerUnavailableError):
        desk.reviews.decide(hold, verdict, "ann")
    assert len(holds.pending(desk.app.store)) == 1
    desk.down = False
    assert desk.reviews.decide(hold, verdict, "later").by == "ann"
    assert len(desk.published) == 1
    desk.reviews.decide(hold, verdict, "again")
    assert len({sent.id for sent in desk.published}) == 1
    with pytest.raises(NotFoundError):
        desk.reviews.find(JOB)


def test_a_crash_before_the_entry_is_mended_by_the_next_delivery(desk: Desk, tmp_path: Path) -> None:
    sent = ask(desk)
    (hold,) = holds.pending(desk.app.store)
    holds.done(desk.app.store, hold)  # as if the process had died between the two writes
    (work,) = [key for key in desk.app.names("tenants/demo/jobs/") if "/work." in key]
    desk.app.store.delete(work)
    desk.app.deliver(sent)
    assert holds.pending(desk.app.store) == [hold]


def test_a_cancelled_job_goes_nowhere_however_it_is_decided(desk: Desk) -> None:
    ask(desk)
    (hold,) = desk.reviews.find(JOB)
    records.cancel(desk.app.store, "demo", JOB, 1.0)
    assert desk.status() == "cancelled"
    desk.reviews.decide(hold, REJECTED, "bob")
    assert desk.published == []
    assert holds.pending(desk.app.store) == []


def test_two_events_of_a_job_wait_and_are_decided_each(desk: Desk) -> None:
    ask(desk, "e-1")
    ask(desk, "e-2")
    found = desk.reviews.find(JOB)
    assert len(found) == 2
    desk.reviews.decide(found[0], APPROVED, "ann")
    assert desk.status() == "in_review"
    desk.reviews.decide(found[1], APPROVED, "ann")
    assert len({sent.id for sent in desk.published}) == 2


def test_jobs_of_two_tenants_with_one_id_are_told_apart(desk: Desk, tmp_path: Path) -> None:
    ask(desk)
    (hold,) = holds.pending(desk.app.store)
    other = holds.Hold("other", JOB, hold.stage, hold.checks, hold.since, hold.event)
    holds.keep(desk.app.store, other)
    assert len(desk.reviews.find(JOB)) == 2
    assert [found.tenant for found in desk.reviews.find(JOB, "other")] == ["other"]


def test_the_command_line_lists_shows_and_decides(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Callable[..., int]
) -> None:
    ask(desk)
    assert run("list") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["tenant"], row["job"], row["stage"], row["checks"]) == ("demo", JOB, "asking", ["nsfw"])
    assert run("show", JOB) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["status"] == "in_review"
    assert shown["data"]["target"]["key"] == job().target.key
    assert run("approve", JOB, "--by", "ann") == 1, "K_SINK names no broker"
    assert "broker_unavailable" in capsys.readouterr().err
    assert run("approve", "no-such-job") == 1
    assert "not_found" in capsys.readouterr().err


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., int]:
    from infra.review.cli import main

    environ = {"WAKESWAP_STORE_URL": f"file:{tmp_path}", "WAKESWAP_EVENT_KEYS": EVENT_KEYS}
    return lambda *arguments: main(arguments, environ)
