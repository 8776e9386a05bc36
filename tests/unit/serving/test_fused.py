"""Stages that share a process: the same records and answers as alone, and the broker wherever a handover ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from shared.errors import ConfigError
from shared.events.codec import decode, encode_binary
from shared.events.event import Event, reply_id
from shared.events.payloads import Rejection
from shared.serving.record import Record
from shared.storage import keys
from tests.services.held import main as held
from tests.signing import signed
from tests.unit.serving.support import JOB, App, event, until

RELAYED = {"exact": {"type": "dev.wakeswap.relay.completed.v1"}}


def fused(root: Path, *filters: object, first: str = "relay", **environ: str) -> App:
    handovers = {"second": filters or [{"exact": {"type": f"dev.wakeswap.{first}.completed.v1"}}]}
    return App(f"{first}+second", root, WAKESWAP_HANDOVERS=json.dumps(handovers), **environ)


def said(answer: TestResponse) -> Event:
    assert answer.status_code == 200, answer.data
    return decode(dict(answer.headers), answer.data, limit=100_000)


def recorded(app: App, stage: str) -> Record:
    (key,) = app.names(keys.job("demo", JOB) + f"{stage}/work.")
    return Record.decode(app.store.get(key)[0])


def to(app: App, path: str, sent: Event) -> TestResponse:
    headers, body = encode_binary(signed(sent))
    return app.client.post(path, headers=headers, data=body)


def kept(app: App, stage: str) -> Event:
    reply = recorded(app, stage).reply
    assert reply
    return decode(dict(reply.headers), reply.body, limit=100_000)


def test_the_last_stage_answers_and_each_has_its_record_and_its_metrics(tmp_path: Path) -> None:
    app, cause = fused(tmp_path), event()
    last, first = said(app.deliver(cause)), kept(app, "relay")
    assert first.id == reply_id("relay", cause, "completed")
    assert last == kept(app, "second")
    assert (last.type, last.id) == ("dev.wakeswap.second.completed.v1", reply_id("second", first, "completed"))
    metrics = app.client.get("/metrics").text
    for stage in ("relay", "second"):
        assert f'wakeswap_events_total{{code="done",stage="{stage}"}} 1.0' in metrics


def test_a_later_delivery_gets_the_same_bytes_at_either_stage(tmp_path: Path) -> None:
    app = fused(tmp_path)
    answer = app.deliver(event())
    again, alone = app.deliver(event()), to(app, "/second", kept(app, "relay"))
    assert answer.data == again.data == alone.data
    assert dict(answer.headers) == dict(again.headers) == dict(alone.headers)


def test_what_the_next_stage_cannot_do_now_goes_to_the_broker(tmp_path: Path) -> None:
    """Which tries that stage again by itself, as if it ran alone: the first is done and stays done."""
    app = fused(tmp_path)
    first = said(app.run("second:ModelError"))
    assert first.type == "dev.wakeswap.relay.completed.v1"
    assert recorded(app, "second").reply is None
    failed = to(app, "/second", first)
    assert (failed.status_code, failed.get_json(force=True)["code"]) == (503, "model_unavailable")
    assert said(app.run("second:ModelError")) == first


def test_a_rejection_by_the_next_stage_is_the_answer(tmp_path: Path) -> None:
    last = said(fused(tmp_path).run("second:RejectedError"))
    assert last.type == "dev.wakeswap.second.rejected.v1"


@pytest.mark.parametrize(
    ("filters", "extensions", "last"),
    [
        ([RELAYED, {"not": {"exact": {"enhance": "true"}}}], {}, "second"),
        ([RELAYED, {"not": {"exact": {"enhance": "true"}}}], {"enhance": "true"}, "relay"),
        ([{"any": [{"exact": {"type": "x"}}, {"all": [RELAYED, {"exact": {"media": "image"}}]}]}], {}, "relay"),
        ([{"any": [{"exact": {"type": "x"}}, {"all": [RELAYED]}]}], {}, "second"),
        ([{"exact": {"source": "/wakeswap/relay", "subject": JOB}}], {}, "second"),
    ],
)
def test_only_what_the_trigger_would_match_is_handed_over(
    tmp_path: Path, filters: list[object], extensions: Mapping[str, str], last: str
) -> None:
    cause = event()
    answer = fused(tmp_path, *filters).deliver(replace(cause, extensions={**cause.extensions, **extensions}))
    assert said(answer).source == f"/wakeswap/{last}"


def test_a_process_that_has_to_end_hands_nothing_over(tmp_path: Path) -> None:
    app, answers = fused(tmp_path, first="held"), list[TestResponse]()
    held.go.clear()
    held.started.clear()
    thread = threading.Thread(target=lambda: answers.append(app.deliver(event())))
    thread.start()
    until(lambda: held.started)
    app.lifecycle.stop()
    held.go.set()
    thread.join()
    assert said(answers[0]).source == "/wakeswap/held"
    assert app.names(keys.job("demo", JOB) + "second/") == []


def test_cold_05_all_stages_share_the_time_of_one_event(tmp_path: Path) -> None:
    app, answers = fused(tmp_path, first="held", WAKESWAP_TIMEOUT_SECONDS="30"), list[TestResponse]()
    held.go.clear()
    thread = threading.Thread(target=lambda: answers.append(app.run("second:RejectedError")))
    thread.start()
    time.sleep(0.3)
    held.go.set()
    thread.join()
    rejected = said(answers[0]).data
    assert isinstance(rejected, dict)
    assert 0 < float(str(Rejection(**rejected).context["seconds"])) <= 29.7  # type: ignore[arg-type]


def test_filters_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    anything = [{"not": {"exact": {"type": "none"}}}]
    handovers = json.dumps({"relay": anything, "second": anything})
    app = App("relay+second", tmp_path, WAKESWAP_HANDOVERS=handovers)
    assert said(app.deliver(event())).source == "/wakeswap/second"


@pytest.mark.parametrize(
    ("stages", "handovers"),
    [
        ("relay+door", "{}"),
        ("relay+second", "[]"),
        ("relay+second", "{"),
        ("relay+second", '{"third": []}'),
        ("relay+second", '{"second": []}'),
        ("relay+second", '{"second": {"exact": {"type": "t"}}}'),
        ("relay+second", '{"second": [{"prefix": {"type": "t"}}]}'),
        ("relay+second", '{"second": [{"exact": {}}]}'),
        ("relay+second", '{"second": [{"exact": {"a": "b"}, "not": {}}]}'),
    ],
)
def test_what_cannot_be_served_together_does_not_start(tmp_path: Path, stages: str, handovers: str) -> None:
    with pytest.raises(ConfigError):
        App(stages, tmp_path, WAKESWAP_HANDOVERS=handovers)
