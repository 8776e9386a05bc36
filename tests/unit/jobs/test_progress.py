"""How far a video is, as its owner sees it, in a folder that has a thousand files and more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.jobs import film, views
from shared.jobs.film import Film, Progress
from shared.jobs.records import JSON, OUTCOME, JobRecord, create
from shared.serving import api_documents
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore
from tests.unit.jobs.film import JOB, REQUEST, clip, plan


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path)
    create(store, "demo", JobRecord(REQUEST))
    return store


def split(store: LocalStore, parts: int) -> None:
    TenantStore(store, "demo", JOB, film.SPLIT).save(film.PLAN, film.closed_plan(plan(parts)), JSON)


def test_before_it_is_divided_nobody_knows(store: LocalStore) -> None:
    assert views.view(store, "demo", JOB).progress is None


def test_progress_counts_the_frames_of_segments_that_are_done(store: LocalStore) -> None:
    split(store, 6)
    for index in (0, 4):
        Film(store, "demo", JOB).take(plan(6), clip(index), f"cause-{index}")
    view = views.view(store, "demo", JOB)
    assert view.progress == Progress(20, 60, 2, 6)
    shown = api_documents.job(view)
    assert isinstance(shown, dict)
    assert shown["progress"] == {"frames_done": 20, "frames": 60, "segments_done": 2, "segments": 6}
    assert shown["media"] == "video"
    assert views.view(store, "demo", JOB, brief=True).progress is None


def test_a_damaged_plan_hides_nothing_else(store: LocalStore) -> None:
    TenantStore(store, "demo", JOB, film.SPLIT).save(film.PLAN, b"{", JSON)
    assert views.view(store, "demo", JOB).progress is None


def test_of_a_long_video_the_end_is_found_and_the_last_works_are_shown(store: LocalStore) -> None:
    split(store, 400)
    for index in range(400):
        for stage in ("assemble", "detect", "swap"):
            work = {"started": 100.0 + index, "finished": 101.0 + index}
            key = keys.work("demo", JOB, stage, f"{index:032}")
            store.put(key, json.dumps(work).encode())
    end = {"type": "dev.wakeswap.swap.rejected.v1", "data": {"job": JOB, "stage": "swap", "code": "c", "detail": "d"}}
    store.put(keys.job("demo", JOB, OUTCOME), json.dumps(end).encode())
    view = views.view(store, "demo", JOB)
    assert view.status == "rejected"
    assert view.job == REQUEST
    assert len(view.stages) == 3 * views.MOST_WORKS
    assert min(entry.started for entry in view.stages) == 100.0 + 400 - views.MOST_WORKS
