"""Upload notifications, as S3, MinIO and every envelope around them send them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ForbiddenError, JsonValue, RequestError
from shared.events.notifications import Ignored, ObjectCreated, parse
from tests.unit.jobs.world import event_file

EXPECTED = event_file("s3_keys_expected.json")


def record(key: str, event: str = "ObjectCreated:Put", **stored: JsonValue) -> dict[str, JsonValue]:
    facts: JsonValue = {"bucket": {"name": "b"}, "object": {"key": key, **stored}}
    return {"eventName": event, "eventTime": "2026-01-02T03:04:05.678Z", "s3": facts}


def keys_of(body: JsonValue) -> list[str]:
    return [entry.key for entry in parse(body) if isinstance(entry, ObjectCreated)]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_s3_01_key_is_decoded_once_as_a_form(name: str) -> None:
    expected = EXPECTED[name]
    (found,) = keys_of(event_file(f"s3_put_{name}.json"))
    assert found == expected["real_key"]
    assert found.encode() == expected["real_key"].encode()  # NFD stays NFD


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda k: not k.endswith("/")))
def test_s3_01_every_key_survives_both_encodings(key: str) -> None:
    for encoded in (quote_plus(key), quote(key), quote(key, safe="")):
        assert keys_of({"Records": [record(encoded)]}) == [key]


def test_facts_of_a_record() -> None:
    (found,) = parse({"Records": [record("a", size=5, eTag='"abc-5"', versionId="v", sequencer="00A")]})
    assert found == ObjectCreated("b", "a", 5, "abc-5", "v", "00A", 1767323045.678)


@pytest.mark.parametrize("name", ["s3_test_event.json", "sns_wrapped_test_event.json"])
def test_s3_03_test_event_is_told_apart(name: str) -> None:
    assert parse(event_file(name)) == [Ignored("test_event")]


def test_s3_03_handshake_is_refused() -> None:
    with pytest.raises(ForbiddenError) as caught:
        parse(event_file("sns_subscription_confirmation.json"))
    assert caught.value.status == 403


@pytest.mark.parametrize("name", ["minio_put.json", "minio_multipart.json"])
def test_s3_06_minio_shape(name: str) -> None:
    (found,) = parse(event_file(name))
    assert isinstance(found, ObjectCreated)
    assert (found.bucket, found.key, found.size) == ("faceswap-in", "t-acme/in/my photo.jpg", 23000)


def test_s3_06_multipart_copy_and_post() -> None:
    (big,) = parse(event_file("s3_multipart_complete.json"))
    assert isinstance(big, ObjectCreated)
    assert big.etag.endswith("-5")
    assert keys_of(event_file("s3_copy_and_post.json")) == ["t-acme/in/c.jpg", "t-acme/in/p.jpg"]


@pytest.mark.parametrize("kind", ["Put", "Post", "Copy", "CompleteMultipartUpload"])
@pytest.mark.parametrize("prefix", ["", "s3:"])
def test_s3_06_event_names(kind: str, prefix: str) -> None:
    assert keys_of({"Records": [record("a", f"{prefix}ObjectCreated:{kind}")]}) == ["a"]


@pytest.mark.parametrize("name", ["ce_knative_aws_sqs.json", "ce_knative_aws_sqs_string_data.json"])
def test_s3_10_integration_source(name: str) -> None:
    event = event_file(name)
    assert keys_of(event["data"]) == ["t-acme/in/a b.jpg"]
    assert keys_of(event) == ["t-acme/in/a b.jpg"]


def test_s3_10_data_that_is_no_json_is_a_bad_request() -> None:
    with pytest.raises(RequestError) as caught:
        parse("not json")
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("ObjectRemoved:Delete", "deleted"),
        ("s3:ObjectRemoved:DeleteMarkerCreated", "deleted"),
        ("LifecycleExpiration:Delete", "deleted"),
        ("ObjectTagging:Put", "unknown"),
        ("s3:ObjectAccessed:Get", "unknown"),
        ("", "unknown"),
    ],
)
def test_other_events_make_nothing(event: str, reason: str) -> None:
    (found,) = parse({"Records": [record("a", event)]})
    assert isinstance(found, Ignored)
    assert found.reason == reason


def test_folder_marker() -> None:
    assert parse({"Records": [record("a%2F")]}) == [Ignored("folder_marker", "a/")]


def eventbridge(key: str, kind: str = "Object Created") -> dict[str, JsonValue]:
    stored: JsonValue = {"key": key, "size": 5, "etag": "abc", "version-id": "v", "sequencer": "00A"}
    detail: JsonValue = {"bucket": {"name": "b"}, "object": stored, "reason": "PutObject"}
    return {"source": "aws.s3", "detail-type": kind, "time": "2026-01-02T03:04:05Z", "detail": detail}


def test_eventbridge_keys_are_not_encoded() -> None:
    assert parse(eventbridge("a+b%20c.jpg")) == [ObjectCreated("b", "a+b%20c.jpg", 5, "abc", "v", "00A", 1767323045.0)]
    assert parse(eventbridge("a", "Object Deleted")) == [Ignored("deleted", "a")]
    assert parse(eventbridge("a", "Object Tags Added")) == [Ignored("unknown", "Tags Added")]


def test_envelopes_in_each_other() -> None:
    inner = json.dumps({"Records": [record("a+b")]})
    sns: JsonValue = {"Type": "Notification", "Message": inner}
    assert keys_of(sns) == ["a b"]
    assert keys_of({"Messages": [{"MessageId": "1", "Body": json.dumps(sns)}, {"Body": inner}]}) == ["a b", "a b"]
    assert keys_of({"Records": [{"eventSource": "aws:sqs", "body": json.dumps(sns)}]}) == ["a b"]
    assert keys_of({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": inner}}]}) == ["a b"]
    assert keys_of({"Message": json.dumps(eventbridge("a+b"))}) == ["a+b"]
    encoded = base64.b64encode(json.dumps(sns).encode()).decode()
    assert keys_of({"specversion": "1.0", "id": "1", "data_base64": encoded}) == ["a b"]


def test_one_bad_record_does_not_cost_the_others_their_turn() -> None:
    handshake: JsonValue = {"Body": json.dumps(event_file("sns_subscription_confirmation.json"))}
    found = parse({"Records": [{"body": "no json"}, handshake, record("%FF"), 7, record("good")]})
    assert [entry.reason for entry in found if isinstance(entry, Ignored)] == ["malformed"] * 4
    assert found[-1] == ObjectCreated("b", "good", time=1767323045.678)


def test_too_many_envelopes() -> None:
    body: JsonValue = {"Records": [record("a")]}
    for _ in range(12):
        body = {"Message": json.dumps(body)}
    assert [type(entry) for entry in parse(body)] == [Ignored]


NAMES = ["Records", "Message", "Body", "s3", "object", "key", "bucket", "name", "eventName", "eventTime", "detail"]
NAMES += ["Type", "Event", "size", "data_base64", "detail-type"]
TEXTS = ["ObjectCreated:Put", "aws.s3", "s3:TestEvent", "a%", "%FF", "\ud800", "{}", "[]", "9999-99-99"]


def _containers(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    named = st.sampled_from(sorted({*event_file("ce_knative_aws_sqs.json"), *NAMES}))
    return st.lists(inner, max_size=4) | st.dictionaries(named, inner | st.sampled_from(TEXTS), max_size=5)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), _containers, max_leaves=20)


@given(JSON)
def test_nothing_but_our_own_errors(body: JsonValue) -> None:
    try:
        found = parse(body)
    except RequestError:
        return
    assert all(isinstance(entry, ObjectCreated | Ignored) for entry in found)
