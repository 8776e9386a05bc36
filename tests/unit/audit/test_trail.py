"""Lines are written once and never changed; pictures stand in them under the operator's key or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from shared.audit import lines
from shared.audit.lines import JOB, REFUSED, Line
from shared.audit.marks import Marks
from shared.audit.trail import NOBODY, Trail
from shared.errors import JsonValue
from shared.events.payloads import Job, ObjectRef, Rejection, Result
from shared.storage import keys
from shared.storage.local import LocalStore

NAME, KEY = "job-00000001", "the-audit-key-of-the-tests-0123456789"
DIGEST = hashlib.sha256(b"a picture").hexdigest()
REF = ObjectRef("tenants/demo/inbox/Maria Muster.jpg", DIGEST, 9, "image/jpeg")
MADE = Job(NAME, (REF, REF), REF, reference=REF, created="2026-01-02T03:04:05.000Z", origin="upload")
ONE = Line(JOB, REFUSED, "stage:detect", "no_face_in_source")


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_repeat_writes_no_second_line_also_after_midnight(tmp_path: Path) -> None:
    store, clock = LocalStore(tmp_path), Clock(1_800_000_000.0)
    trail = Trail(store, now=clock)
    for _ in range(3):
        trail.write("demo", NAME, "detect.e1", "2027-01-14T23:59:59Z", [ONE, replace(ONE, code="other")])
        clock.now += 86_400
    assert [info.key for info in store.list("system/").objects] == [
        keys.audit("2027-01-14", "demo", f"{NAME}.detect.e1.jsonl")
    ]
    assert [(one.code, one.at) for one in trail.of_job("demo", NAME)] == [
        ("no_face_in_source", "2027-01-15T08:00:00.000Z"),
        ("other", "2027-01-15T08:00:00.000Z"),
    ]


@pytest.mark.parametrize("when", ["", "yesterday", "2026-13-45T00:00:00Z", "0001-01-01T00:00:00+23:59"])
def test_what_is_no_time_counts_as_now(tmp_path: Path, when: str) -> None:
    trail = Trail(LocalStore(tmp_path), now=Clock(1_800_000_000.0))
    trail.write("demo", NAME, "x", when, [ONE])
    assert trail.days() == ["2027-01-15"]


def test_no_decision_no_write(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    Trail(store).write("demo", NAME, "x", "", [])
    assert not store.list("").objects


def test_a_day_is_a_tenants_own_and_damage_hides_nothing_else(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    trail = Trail(store, now=Clock(1_800_000_000.0))
    trail.write("demo", NAME, "a", "", [ONE])
    trail.write("acme", NAME, "a", "", [ONE])
    trail.write(NOBODY, "", "access.1", "", [ONE])
    store.put(keys.audit("2027-01-15", "demo", f"{NAME}.b.jsonl"), b'{"at": "20')
    assert [one.what for one in trail.of_day("demo", "2027-01-15")] == ["unreadable", JOB]
    assert [one.job for one in trail.of_day(NOBODY, "2027-01-15")] == [""]
    assert trail.of_day("demo", "2027-01-15", "job-0000000") == [], "an id is no prefix of another's"


def test_pictures_are_named_by_keyed_hashes_only() -> None:
    marked = str(lines.accepted(MADE, "env:demo", Marks(KEY)).facts)
    assert DIGEST not in marked
    assert "Maria" not in marked
    assert marked.count(Marks(KEY).picture(DIGEST)) == 4
    assert Marks(KEY).picture(DIGEST) not in (Marks(KEY + "x").picture(DIGEST), Marks(KEY).name(DIGEST))


def test_without_a_key_no_picture_is_named() -> None:
    assert "pictures" not in lines.accepted(MADE, "env:demo", Marks()).facts
    result = Result(NAME, REF, 4, 3, (), "https://x/?X-Amz-Signature=1", "2030-01-01")
    assert lines.ended(result, "publish", Marks()).facts == {"width": 4, "height": 3}
    assert not Marks().address("192.0.2.1")


def test_what_somebody_sent_does_not_come_along_with_the_reason() -> None:
    sent: dict[str, JsonValue] = {"key": REF.key, "field": "swapper", "url": "https://x/?sig=1", "words": ["secret"]}
    line = lines.ended(Rejection(NAME, "intake", "object_gone", "Maria", 422, sent), "intake", Marks(KEY))
    assert line.facts == {"stage": "intake", "field": "swapper"}
