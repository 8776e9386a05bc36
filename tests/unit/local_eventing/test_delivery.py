"""The delivery rules as tables, with the numbers of real Knative."""

import base64

import pytest

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.delivery import (
    DEFAULT_DELIVERY,
    Progress,
    Step,
    backoff,
    dead_letter_copy,
    effective,
    error_data,
    next_step,
    retried,
    time_to_live,
)
from infra.local.eventing.filters import All
from infra.local.eventing.spec import Broker, Delivery, Destination, Trigger

SINK = Destination(None, "http://sink.test/")
OTHER_SINK = Destination(None, "http://other.test/")
POLICY = Delivery(retry=2, backoff_policy="exponential", backoff_delay=0.2, dead_letter_sink=SINK)


@pytest.mark.parametrize("code", [404, 408, 409, 429, 500, 501, 502, 503, 504, 599])
def test_retried(code: int) -> None:
    assert retried(code)
    assert next_step(Progress("waiting"), code, POLICY) == Step(Progress("waiting", 1), 0.4)


@pytest.mark.parametrize("code", [300, 301, 302, 307, 400, 401, 403, 405, 410, 413, 415, 422, 499])
def test_final_answers_go_to_the_dead_letter_sink_at_once(code: int) -> None:
    assert not retried(code)
    assert next_step(Progress("waiting"), code, POLICY) == Step(Progress("burying", 1))


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_done(code: int) -> None:
    assert next_step(Progress("waiting", 1), code, POLICY) == Step(Progress("done", 1))


def test_attempts_are_retry_plus_one() -> None:
    progress, waits = Progress("waiting"), []
    while progress.state == "waiting":
        step = next_step(progress, 503, POLICY)
        progress = step.progress
        waits.append(step.wait)
    assert progress == Progress("burying", 3)
    assert waits == pytest.approx([0.4, 0.8, 0.0])


def test_without_a_sink_the_event_is_dropped() -> None:
    assert next_step(Progress("waiting"), 422, Delivery(retry=5)) == Step(Progress("dropped", 1))
    assert next_step(Progress("waiting"), 503, Delivery()) == Step(Progress("dropped", 1))


def test_the_sink_is_tried_without_end_and_ever_slower() -> None:
    progress, waits = Progress("burying", 3), []
    for _ in range(200):
        step = next_step(progress, 503, POLICY)
        progress = step.progress
        waits.append(step.wait)
    assert progress == Progress("burying", 3, 200)
    assert waits[:7] == pytest.approx([1, 2, 4, 8, 16, 32, 60])
    assert waits[-1] == pytest.approx(60)
    assert next_step(progress, 202, POLICY).progress == Progress("dead", 3, 200)


def test_a_sink_that_refuses_for_good_ends_it() -> None:
    assert next_step(Progress("burying", 3), 400, POLICY) == Step(Progress("dropped", 3, 1))


@pytest.mark.parametrize(
    ("delivery", "waits"),
    [
        (Delivery(backoff_policy="linear", backoff_delay=0.5), [0.5, 1.0, 1.5]),
        (Delivery(backoff_policy="exponential", backoff_delay=0.2), [0.4, 0.8, 1.6]),
        (Delivery(backoff_policy="linear"), [0, 0, 0]),
        (Delivery(backoff_delay=0.5), [0, 0, 0]),
        (Delivery(), [0, 0, 0]),
    ],
)
def test_backoff(delivery: Delivery, waits: list[float]) -> None:
    assert [backoff(delivery, n) for n in (1, 2, 3)] == pytest.approx(waits)


def test_default_delivery_is_knatives() -> None:
    assert Delivery(retry=10, backoff_policy="exponential", backoff_delay=0.2) == DEFAULT_DELIVERY


@pytest.mark.parametrize(
    ("of_broker", "of_trigger", "expected"),
    [
        (None, None, DEFAULT_DELIVERY),
        (Delivery(retry=1), None, Delivery(retry=1)),
        (POLICY, None, POLICY),
        # a Trigger's delivery replaces the Broker's as a whole; only the sink is inherited by itself
        (POLICY, Delivery(retry=7), Delivery(retry=7, dead_letter_sink=SINK)),
        (POLICY, Delivery(dead_letter_sink=OTHER_SINK), Delivery(dead_letter_sink=OTHER_SINK)),
        (None, Delivery(retry=7), Delivery(retry=7)),
    ],
)
def test_effective(of_broker: Delivery | None, of_trigger: Delivery | None, expected: Delivery) -> None:
    trigger = Trigger("ns", "t", "b", All(()), SINK, of_trigger)
    assert effective(Broker("ns", "b", of_broker), trigger) == expected


def test_dead_letter_copy_keeps_the_event_and_says_why() -> None:
    event = CloudEvent({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}, b"data")
    copy = dead_letter_copy(event, "http://swap/", 422, "no face")
    assert copy.data == b"data"
    assert dict(copy.attributes) == {
        **event.attributes,
        "knativeerrordest": "http://swap/",
        "knativeerrorcode": "422",
        "knativeerrordata": "no face",
    }
    assert "knativeerrordata" not in dead_letter_copy(event, "http://swap/", 422, "").attributes


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", ""),
        (b'{"code":"no_face"}', '{"code":"no_face"}'),
        (b"a\nb", base64.b64encode(b"a\nb").decode()),
        ("gesperrt \u00fc".encode(), base64.b64encode("gesperrt \u00fc".encode()).decode()),
        (b"\xff\x00", "/wA="),
        (b"x" * 3000, "x" * 1024),
    ],
)
def test_error_data(body: bytes, expected: str) -> None:
    assert error_data(body) == expected


def test_long_binary_error_data_stays_decodable() -> None:
    data = error_data(bytes(range(256)) * 20)
    assert len(data) == 1024
    assert base64.b64decode(data, validate=True) == (bytes(range(256)) * 20)[:768]


@pytest.mark.parametrize(
    ("brought", "left"), [(None, 255), ("255", 254), ("2", 1), ("1", 0), ("0", -1), ("x", 255), ("", 255), ("²", 255)]
)
def test_time_to_live(brought: str | None, left: int) -> None:
    assert time_to_live({} if brought is None else {"knativebrokerttl": brought}) == left
