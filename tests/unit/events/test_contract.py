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
from shared.events.payloads import Faces, Failure, Job, Media, ObjectRef, Payload, Rejection, Result
from tests.signing import signed

EXAMPLES = Path(__file__).parents[2] / "events"
COMPLETED: dict[str, type[Payload]] = {
    "intake": Job,
    "moderate": Job,
    "detect": Faces,
    "swap": Media,
    "enhance": Media,
    "publish": Result,
}
CONTRACT: dict[str, type[Payload]] = {
    **{f"{stage}.completed": kind for stage, kind in COMPLETED.items()},
    **{f"{stage}.rejected": Rejection for stage in COMPLETED},
    "dead_letter.failed": Failure,
}
CAUSES = {
    "moderate": "intake",
    "detect": "moderate",
    "swap": "detect",
    "enhance": "swap",
    "publish": "swap",
    "dead_letter": "detect",
}
UNWOKEN = {"intake.rejected", "dead_letter.failed"}
"""What begins with an end tells no Trigger when to wake the stages to come."""
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
    stage, outcome = name.split(".")
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


@pytest.mark.parametrize("name", [name for name in CONTRACT if not name.startswith("intake")])
def test_example_is_the_reply_to_its_cause(name: str) -> None:
    event = example(name)
    stage = name.partition(".")[0]
    cause = example(f"{CAUSES[stage]}.completed")
    if stage == "enhance":
        cause = replace(cause, extensions={**cause.extensions, "enhance": "true"})
    if name in UNWOKEN:
        cause = replace(cause, extensions={key: cause.extensions[key] for key in cause.extensions if key != "wake"})
    assert replace(signed(reply(stage, cause, to_payload(event, CONTRACT[name]))), time=event.time) == event, AGAIN


@pytest.mark.parametrize("name", ["intake.completed", "intake.rejected"])
def test_example_starts_a_chain(name: str) -> None:
    event = example(name)
    made = first(
        "intake",
        event.tenant,
        to_payload(event, CONTRACT[name]),
        event.job,
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
    cause = example("intake.completed")
    job = Job("job", (REF,), REF)
    assert reply("moderate", cause, job).id == reply_id("moderate", cause, "completed", 0)
    assert reply("moderate", cause, job, part=1).id == reply_id("moderate", cause, "completed", 1)


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
