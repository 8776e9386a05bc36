"""The field cases CE-* as far as the codec decides them; the harness and the broker have their own tests of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import (
    BatchUnsupportedError,
    EmptyDataError,
    InvalidCloudEventError,
    PayloadTooLargeError,
    UnsupportedContentTypeError,
    UnsupportedSpecVersionError,
)
from shared.events.codec import MAX_BYTES, STRUCTURED, decode, encode_binary, encode_structured, to_payload
from shared.events.contract import reply
from shared.events.event import Event, reply_id
from shared.events.payloads import Job, Rejection

DATA = Path(__file__).parents[2] / "data" / "event"
LIMIT = 1_048_576


def structured(name: str, content_type: str = STRUCTURED) -> Event:
    return decode({"Content-Type": content_type}, (DATA / name).read_bytes(), limit=LIMIT)


def http(name: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of a raw request."""
    head, _, body = (DATA / name).read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")
    lines = head.decode().splitlines()[1:]
    return dict(line.split(": ", 1) for line in lines), body


def test_ce_01_same_source_and_id_is_one_event_whatever_else_differs() -> None:
    event = structured("ce_structured_ok.json")
    again = replace(event, time="2027-01-01T00:00:00Z", extensions={"traceparent": "00-other"})
    assert event.digest == again.digest
    assert reply_id("detect", event, "completed", 0) == reply_id("detect", again, "completed", 0)


def test_ce_01_equal_id_of_another_source_is_another_event() -> None:
    documents = json.loads((DATA / "ce_dup_source_differs.json").read_text())
    first, second = (decode({"content-type": STRUCTURED}, json.dumps(it).encode(), limit=LIMIT) for it in documents)
    assert first.id == second.id
    assert first.digest != second.digest
    assert reply_id("detect", first, "completed", 0) != reply_id("detect", second, "completed", 0)


def test_ce_01_reply_ids_tell_stage_outcome_and_part_apart() -> None:
    event = structured("ce_structured_ok.json")
    ids = {
        reply_id("detect", event, "completed", 0),
        reply_id("swap", event, "completed", 0),
        reply_id("detect", event, "rejected", 0),
        reply_id("detect", event, "completed", 1),
    }
    assert len(ids) == 4


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion"])
def test_ce_02_missing_attribute_is_named_in_structured_mode(name: str) -> None:
    with pytest.raises(InvalidCloudEventError) as caught:
        structured(f"ce_missing_{name}.json")
    assert caught.value.status == 400
    assert caught.value.context["attribute"] == name
    assert name in caught.value.detail


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion"])
def test_ce_02_missing_header_is_named_in_binary_mode(name: str) -> None:
    headers, body = encode_binary(structured("ce_structured_ok.json"))
    del headers[f"ce-{name}"]
    with pytest.raises(InvalidCloudEventError) as caught:
        decode(headers, body, limit=LIMIT)
    assert caught.value.context["attribute"] == name


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion", "subject", "time", "dataschema"])
@pytest.mark.parametrize("mode", [encode_binary, encode_structured])
def test_ce_02_empty_attribute_is_refused(name: str, mode: Callable[[Event], tuple[dict[str, str], bytes]]) -> None:
    headers, body = mode(structured("ce_structured_ok.json"))
    if mode is encode_binary:
        headers[f"ce-{name}"] = ""
    else:
        body = json.dumps({**json.loads(body), name: ""}).encode()
    with pytest.raises(InvalidCloudEventError) as caught:
        decode(headers, body, limit=LIMIT)
    assert caught.value.context["attribute"] == name


def test_ce_02_empty_id_file() -> None:
    with pytest.raises(InvalidCloudEventError, match="id: is empty"):
        structured("ce_empty_id.json")


def test_ce_02_other_specversion_has_its_own_code() -> None:
    with pytest.raises(UnsupportedSpecVersionError) as caught:
        structured("ce_specversion_0_3.json")
    assert (caught.value.status, caught.value.code) == (400, "unsupported_specversion")


def test_ce_02_binary_event_with_empty_body_has_no_data_for_a_stage() -> None:
    event = decode(*http("ce_binary_empty_body.http"), limit=LIMIT)
    with pytest.raises(EmptyDataError) as caught:
        to_payload(event, Job)
    assert (caught.value.status, caught.value.code) == (400, "empty_data")


@pytest.mark.parametrize("name", ["ce_batch.json", "ce_batch_empty.json"])
@pytest.mark.parametrize("parameters", ["", "; charset=utf-8", " ;charset=UTF-8"])
def test_ce_05_batches_are_refused_even_when_headers_make_them_look_binary(name: str, parameters: str) -> None:
    headers, _ = encode_binary(structured("ce_structured_ok.json"))
    headers["content-type"] = "application/CloudEvents-Batch+json" + parameters
    with pytest.raises(BatchUnsupportedError) as caught:
        decode(headers, (DATA / name).read_bytes(), limit=LIMIT)
    assert caught.value.status == 415


def test_ce_05_base64_data_is_the_same_data() -> None:
    assert structured("ce_data_base64.json") == structured("ce_structured_ok.json")


@pytest.mark.parametrize(
    ("name", "attribute"), [("ce_data_base64_bad.json", "data_base64"), ("ce_data_and_data_base64.json", "data")]
)
def test_ce_05_bad_base64_and_data_twice_are_refused(name: str, attribute: str) -> None:
    with pytest.raises(InvalidCloudEventError) as caught:
        structured(name)
    assert caught.value.context["attribute"] == attribute


def test_ce_05_utf_16_is_read_by_its_character_set_and_by_no_other() -> None:
    body = base64.b64decode((DATA / "ce_utf16.json.b64").read_bytes())
    event = decode({"content-type": f"{STRUCTURED}; charset=utf-16"}, body, limit=LIMIT)
    assert event == structured("ce_structured_ok.json")
    with pytest.raises(UnsupportedContentTypeError):
        decode({"content-type": f"{STRUCTURED}; charset=utf-7"}, body, limit=LIMIT)
    with pytest.raises(InvalidCloudEventError):
        decode({"content-type": STRUCTURED}, body, limit=LIMIT)


def test_ce_05_body_over_the_limit_is_refused_unread() -> None:
    body = (DATA / "ce_structured_ok.json").read_bytes()
    assert decode({"content-type": STRUCTURED}, body, limit=len(body)).id == "e-1"
    with pytest.raises(PayloadTooLargeError) as caught:
        decode({"content-type": STRUCTURED}, body, limit=len(body) - 1)
    assert caught.value.status == 413


@pytest.mark.parametrize("mode", [encode_binary, encode_structured])
def test_ce_05_no_event_of_ours_is_over_what_every_broker_forwards(
    mode: Callable[[Event], tuple[dict[str, str], bytes]],
) -> None:
    headers, body = mode(Event("1", "/s", "t", data="x" * (MAX_BYTES - 500)))
    assert len(body) + len(str(headers)) <= MAX_BYTES
    with pytest.raises(PayloadTooLargeError, match="object store"):
        mode(Event("1", "/s", "t", data="x" * MAX_BYTES))


def test_ce_07_a_reply_never_has_the_type_or_source_of_its_cause() -> None:
    cause = replace(structured("ce_structured_ok.json"), subject="job", extensions={"tenantid": "demo"})
    first = reply("moderate", cause, Rejection("job", "moderate", "content_refused", "", 422))
    assert first.type != cause.type
    assert first.source != cause.source


@pytest.mark.parametrize("name", ["ce_knative_aws_sqs.json", "ce_knative_aws_sqs_string_data.json"])
def test_s3_10_both_forms_of_the_queue_source_carry_the_same_notification(name: str) -> None:
    data = structured(name).data
    notification = json.loads(data if isinstance(data, str) else json.dumps(data))
    assert notification["Records"][0]["s3"]["object"]["key"] == "t-acme/in/a+b.jpg"


def test_s3_10_no_content_type_means_json() -> None:
    headers, body = encode_binary(structured("ce_knative_aws_sqs.json"))
    del headers["content-type"]
    assert decode(headers, body, limit=LIMIT) == structured("ce_knative_aws_sqs.json")
    with pytest.raises(InvalidCloudEventError):
        decode(headers, b"Records=1", limit=LIMIT)
