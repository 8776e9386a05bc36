"""The example events are the contract: each fits its payload, follows from its cause and survives both modes."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest

from shared.errors import InvalidCloudEventError
from shared.events.choices import Options
from shared.events.codec import STRUCTURED, decode, encode_binary, encode_structured, from_payload, to_payload
from shared.events.contract import first, reply
from shared.events.event import Event, Kind, parse_type, reply_id, source_of, type_of
from shared.events.payloads import (
    Clip,
    Faces,
    Failure,
    Job,
    Media,
    ObjectRef,
    Payload,
    Rejection,
    Result,
    Segment,
    Size,
    Tracks,
    Video,
)
from tests.signing import signed

EXAMPLES = Path(__file__).parents[2] / "events"
COMPLETED: dict[str, type[Payload]] = {
    "intake.completed": Job,
    "intake.completed.segment": Segment,
    "intake.completed.video": Job,
    "moderate.completed": Job,
    "moderate.completed.video": Job,
    "split.completed": Segment,
    "detect.completed": Faces,
    "detect.completed.segment": Tracks,
    "swap.completed": Media,
    "swap.completed.segment": Clip,
    "enhance.completed": Media,
    "assemble.completed": Video,
    "assemble.completed.segment": Segment,
    "publish.completed": Result,
    "publish.completed.video": Result,
}
CONTRACT: dict[str, type[Payload]] = {
    **COMPLETED,
    **{f"{name.partition('.')[0]}.rejected": Rejection for name in COMPLETED},
    "dead_letter.failed": Failure,
}
"""Of the events of one type each medium has its example, the stage's first without a word for it."""
CAUSES = {
    "moderate.completed": "intake.completed",
    "moderate.completed.video": "intake.completed.video",
    "split.completed": "moderate.completed.video",
    "detect.completed": "moderate.completed",
    "detect.completed.segment": "split.completed",
    "swap.completed": "detect.completed",
    "swap.completed.segment": "detect.completed.segment",
    "enhance.completed": "swap.completed",
    "assemble.completed": "swap.completed.segment",
    "assemble.completed.segment": "swap.completed.segment",
    "publish.completed": "swap.completed",
    "publish.completed.video": "assemble.completed",
    "dead_letter.failed": "detect.completed",
}
STARTS = ("intake.completed", "intake.completed.segment", "intake.completed.video", "intake.rejected")
UNWOKEN = {"intake.rejected", "intake.completed.segment", "dead_letter.failed"}
"""What begins with an end, or in the middle of a job, tells no Trigger when to wake the stages to come."""
MEDIA = {
    "intake.completed.segment": "segment",
    "detect.completed.segment": "segment",
    "swap.completed.segment": "segment",
    "assemble.completed.segment": "segment",
    "split.completed": "segment",
    "assemble.completed": "video",
    "split.rejected": "video",
    "assemble.rejected": "segment",
    "intake.completed.video": "video",
    "moderate.completed.video": "video",
    "publish.completed.video": "video",
}
"""An image where nothing else is said."""
REF = ObjectRef("tenants/demo/inbox/a.png", "0" * 64, 1, "image/png")
AGAIN = "after a change: python -m tests.signing"


def example(name: str) -> Event:
    return decode({"content-type": STRUCTURED}, (EXAMPLES / f"{name}.json").read_bytes(), limit=65536)


def test_every_event_has_an_example_and_every_example_is_one() -> None:
    assert {path.stem for path in EXAMPLES.iterdir()} == set(CONTRACT)
    assert set(get_args(Payload)) == set(CONTRACT.values())


@pytest.mark.parametrize("name", CONTRACT)
def test_example_is_named_as_the_contract_says(name: str) -> None:
    event = example(name)
    stage, outcome, *_ = name.split(".")
    assert event.extensions["media"] == MEDIA.get(name, "image")
    assert event.kind == Kind(stage, outcome)
    assert event.source == source_of(stage)
    assert CONTRACT[name].outcome == outcome
    asked = {"enhance"} if stage == "enhance" else set()
    asked |= set() if name in UNWOKEN else {"wake"}
    assert set(event.extensions) == {"tenantid", "media", "priority", "traceparent", "partitionkey", "proof"} | asked
    assert event.extensions["partitionkey"] == event.job


@pytest.mark.parametrize("name", CONTRACT)
def test_example_shows_every_field_and_survives_both_modes(name: str) -> None:
    event = example(name)
    payload = to_payload(event, CONTRACT[name])
    assert from_payload(payload) == event.data
    assert decode(*encode_binary(event), limit=65536) == event
    assert decode(*encode_structured(event), limit=65536) == event
    assert json.loads((EXAMPLES / f"{name}.json").read_text()) == json.loads(encode_structured(event)[1])


@pytest.mark.parametrize("name", [name for name in CONTRACT if name not in STARTS])
def test_example_is_the_reply_to_its_cause(name: str) -> None:
    event = example(name)
    stage = name.partition(".")[0]
    cause = example(CAUSES.get(name) or CAUSES[f"{stage}.completed"])
    if stage == "enhance":
        cause = replace(cause, extensions={**cause.extensions, "enhance": "true"})
    if name in UNWOKEN:
        cause = replace(cause, extensions={key: cause.extensions[key] for key in cause.extensions if key != "wake"})
    assert replace(signed(reply(stage, cause, to_payload(event, CONTRACT[name]))), time=event.time) == event, AGAIN


@pytest.mark.parametrize("name", STARTS)
def test_example_starts_a_chain(name: str) -> None:
    event = example(name)
    made = first(
        "intake",
        event.tenant,
        to_payload(event, CONTRACT[name]),
        f"{event.job}.5.0" if name == "intake.completed.segment" else event.job,
        wake="ahead",
        traceparent=str(event.extensions["traceparent"]),
    )
    assert replace(signed(made), time=event.time) == event, AGAIN


def test_the_tenant_comes_from_the_cause_and_never_from_data() -> None:
    cause = Event("1", "/s", "t", "job", extensions={"tenantid": "a", "knativeerrorcode": "500", "priority": "batch"})
    made = reply("detect", cause, Rejection("job", "detect", "c", "d", 422, {"tenantid": "b"}), traceparent="00-x")
    assert made.tenant == "a"
    assert made.extensions == {"tenantid": "a", "priority": "batch", "traceparent": "00-x", "partitionkey": "job"}
    with pytest.raises(InvalidCloudEventError):
        reply("detect", replace(cause, extensions={}), Rejection("job", "detect", "c", "d", 422))


def test_first_events_of_two_tenants_or_causes_differ() -> None:
    job = Job("job", (REF,), REF, priority="batch")
    ids = {first("intake", tenant, job, cause).id for tenant in ("a", "b") for cause in ("1", "2")}
    assert len(ids) == 4
    assert first("intake", "a", job, "1").id in ids
    assert first("intake", "a", job, "1").extensions["priority"] == "batch"


@pytest.mark.parametrize(("asked", "said"), [({}, None), ({"enhancer": "g"}, "true"), ({"upscaler": "u"}, "true")])
def test_a_job_that_asks_for_it_says_so_to_the_triggers_on_every_event(asked: dict[str, str], said: str | None) -> None:
    job = Job("job", (REF,), REF, Options(**asked))
    made = first("intake", "a", job, "1")
    assert made.extensions.get("enhance") == said
    assert reply("moderate", made, job).extensions.get("enhance") == said


@pytest.mark.parametrize(("policy", "said"), [("ahead",) * 2, ("after-moderation",) * 2, ("none", None)])
def test_a_job_says_on_every_event_when_its_stages_are_woken(policy: str, said: str | None) -> None:
    job = Job("job", (REF,), REF)
    made = first("intake", "a", job, "1", wake=policy)
    assert made.extensions.get("wake") == said
    assert reply("moderate", made, job).extensions.get("wake") == said
    refused = first("intake", "a", Rejection("job", "intake", "c", "d", 422), "1", wake=policy)
    assert "wake" not in refused.extensions


def test_parts_of_one_reply_differ() -> None:
    cause = example("moderate.completed.video")
    job = Job("job", (REF,), REF, media="video")
    parts = [reply("split", cause, Segment("job", job, REF, index)) for index in range(3)]
    assert [part.id for part in parts] == [reply_id("split", cause, "completed", index) for index in range(3)]
    assert {part.extensions["media"] for part in parts} == {"segment"}


def test_a_video_is_one_event_whichever_segment_was_the_last() -> None:
    job = Job("job", (REF,), REF, media="video")
    video = Video("job", job, REF, Size(1, 1), 1.0, 1, 1, 0)
    causes = [replace(example("swap.completed.segment"), id=text) for text in "ab"]
    assert len({reply("assemble", cause, video).id for cause in causes}) == 1
    others = replace(causes[0], extensions={**causes[0].extensions, "tenantid": "other"})
    assert reply("assemble", others, video).id != reply("assemble", causes[0], video).id


@pytest.mark.parametrize(
    "text",
    [
        "dev.wakeswap.detect.completed.v2",
        "dev.wakeswap.detect.done.v1",
        "dev.wakeswap.dead-letter.failed.v1",
        "xdev.wakeswap.detect.completed.v1",
        "dev.wakeswap.detect.completed.v1\n",
        "dev.knative.sources.ping",
        "",
    ],
)
def test_foreign_types_are_not_ours(text: str) -> None:
    assert parse_type(text) is None


def test_types_are_written_as_they_are_read() -> None:
    assert parse_type(type_of("dead_letter", "failed")) == Kind("dead_letter", "failed")


def test_every_payload_names_its_job_first() -> None:
    assert all(fields(kind)[0].name == "job" for kind in get_args(Payload))
