"""The broker over real HTTP: answers, replies, retries, dead letters, replay, time limits, shutdown."""

import asyncio
import base64
import io
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from infra.local.eventing import dispatcher
from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.records import Queue
from infra.local.eventing.spec import Destination
from tests.local.brokers import (
    Document,
    Handler,
    Received,
    Running,
    Subscribers,
    answer,
    broker,
    headers,
    start,
    trigger,
)

pytestmark = pytest.mark.slow

Case = Callable[[Running, Subscribers], Awaitable[None]]


def run(path: Path, handlers: dict[str, Handler], documents: Callable[[str], list[Document]], case: Case) -> None:
    """One case: subscribers, a broker with the manifests that `documents` makes of their URL, then the case."""

    async def main() -> None:
        async with Subscribers(handlers) as subscribers, serving(path / "db", documents(subscribers.url)) as running:
            await case(running, subscribers)

    asyncio.run(main())


@asynccontextmanager
async def serving(
    database: Path, documents: list[Document], resolve: Callable[[Destination], str | None] = Destination.url
) -> AsyncIterator[Running]:
    running = await start(database, documents, resolve)
    try:
        yield running
    finally:
        await running.stop()


def test_an_event_arrives_as_it_was_sent_within_milliseconds(tmp_path: Path) -> None:
    async def case(running: Running, subscribers: Subscribers) -> None:
        waits = []
        for number in range(50):
            head = {**headers(str(number), subject="j%20%C3%BC"), "Content-Type": "image/png", "Prefer": "x"}
            assert await running.post(head, b"\x00\xff") == 202
            sent = asyncio.get_running_loop().time()
            await running.settle()
            waits.append(subscribers.seen["a"][-1].at - sent)
        got = subscribers.seen["a"][0]
        assert got.body == b"\x00\xff"
        assert got.headers["content-type"] == "image/png"
        assert got.headers["prefer"] == "reply"
        assert got.headers["ce-subject"] == "j%20%C3%BC"
        assert "ce-knativebrokerttl" not in got.headers
        assert sorted(waits)[len(waits) // 2] < 0.05

    run(tmp_path, {"a": answer(204)}, lambda url: [broker(), trigger("a", f"{url}/a")], case)


def test_structured_in_and_out(tmp_path: Path) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "start", "data": {"key": "\u00fc"}}

    async def case(running: Running, subscribers: Subscribers) -> None:
        head = {"Content-Type": "application/cloudevents+json"}
        assert await running.post(head, json.dumps(event).encode()) == 202
        await running.settle()
        assert json.loads(subscribers.seen["binary"][0].body) == event["data"]
        got = subscribers.seen["json"][0]
        assert got.headers["content-type"].startswith("application/cloudevents+json")
        assert json.loads(got.body) == {**event, "datacontenttype": "application/json"}

    run(
        tmp_path,
        {"binary": answer(204), "json": answer(204)},
        lambda url: [broker(), trigger("b", f"{url}/binary"), trigger("j", f"{url}/json", format="json")],
        case,
    )


def test_answers_of_the_front_door(tmp_path: Path) -> None:
    async def case(running: Running, _: Subscribers) -> None:
        too_much = io.BytesIO(b"x" * ((1 << 20) + 1))
        assert await running.post(headers("1")) == 202
        assert await running.post(headers("1")) == 202
        assert await running.post({"Content-Type": "application/json"}, b"{}") == 400
        assert await running.post(headers("")) == 400
        assert await running.post({"Content-Type": "application/cloudevents-batch+json"}, b"[]") == 415
        assert await running.post(headers("big"), too_much) == 413
        async with running.session.post(running.url.replace("default", "other"), headers=headers("1")) as response:
            assert response.status == 404
            assert "ns/other" in (await response.json())["detail"]
        async with running.session.get(running.url) as response:
            assert response.status == 405
        async with running.session.options(running.url, headers={"WebHook-Request-Origin": "o.test"}) as response:
            assert (response.status, response.headers["WebHook-Allowed-Origin"]) == (200, "o.test")
        assert [entry.id for entry in await running.runtime.history()] == ["1"]

    run(tmp_path, {}, lambda url: [broker()], case)


def test_duplicates_make_one_delivery(tmp_path: Path) -> None:
    async def case(running: Running, subscribers: Subscribers) -> None:
        assert await asyncio.gather(*(running.post(headers("1", time="2026-01-01T00:00:00Z")) for _ in range(10)))
        assert await running.post({**headers("1"), "ce-source": "/elsewhere"}) == 202
        await running.settle()
        assert subscribers.ids("a") == {"1": 2}

    run(tmp_path, {"a": answer(204)}, lambda url: [broker(), trigger("a", f"{url}/a")], case)


def test_replies_go_to_the_same_broker_and_loops_end(tmp_path: Path) -> None:
    async def ping(received: Received) -> web.Response:
        number = int(received.id) + 1
        return web.Response(headers=headers(str(number), "start", knativebrokerttl="255"), body=b"x")

    async def case(running: Running, subscribers: Subscribers) -> None:
        assert await running.post(headers("0")) == 202
        await running.settle(30)
        assert subscribers.ids("ping") == {str(number): 1 for number in range(255)}

    run(tmp_path, {"ping": ping}, lambda url: [broker(), trigger("ping", f"{url}/ping")], case)


@pytest.mark.parametrize(
    "handler",
    [
        answer(200, b'{"ok":true}', Content_Type="application/json"),
        answer(200, b"[]", Content_Type="application/cloudevents-batch+json"),
        answer(200, b"{}", Content_Type="application/cloudevents+json"),
        answer(200, b"", ce_specversion="1.0", ce_id="", ce_type="t", ce_source="/s"),
        answer(200, b"x" * ((1 << 20) + 1), ce_specversion="1.0", ce_id="1", ce_type="t", ce_source="/s"),
    ],
)
def test_ce_07_a_2xx_that_is_no_event_is_a_failure(tmp_path: Path, handler: Handler) -> None:
    async def case(running: Running, subscribers: Subscribers) -> None:
        await running.post(headers("1"))
        await running.settle()
        assert len(subscribers.seen["a"]) == 3
        assert subscribers.seen["sink"][0].headers["ce-knativeerrorcode"] == "502"

    run(
        tmp_path,
        {"a": handler, "sink": answer(200, b"fine")},
        lambda url: [
            broker(),
            trigger("a", f"{url}/a", retry=2, deadLetterSink={"uri": f"{url}/sink"}),
        ],
        case,
    )


def test_retries_wait_as_the_manifest_says(tmp_path: Path) -> None:
    async def case(running: Running, subscribers: Subscribers) -> None:
        await running.post(headers("1"))
        await asyncio.sleep(0.15)
        assert (await running.runtime.queues())["ns/a"] == Queue(retrying=1)
        assert await running.runtime.idle()
        await running.settle()
        at = [received.at for received in subscribers.seen["a"]]
        waits = [later - earlier for earlier, later in itertools.pairwise(at)]
        assert waits == pytest.approx([0.2, 0.4, 0.6], abs=0.15)
        (entry,) = await running.runtime.history()
        assert (entry.state, entry.failures, entry.code) == ("dropped", 4, 503)

    run(
        tmp_path,
        {"a": answer(503)},
        lambda url: [broker(), trigger("a", f"{url}/a", retry=3, backoffPolicy="linear", backoffDelay="PT0.2S")],
        case,
    )


@pytest.mark.parametrize(("status", "attempts"), [(422, 1), (400, 1), (302, 1), (404, 3), (409, 3), (429, 3), (500, 3)])
def test_ce_06_answer_codes(tmp_path: Path, status: int, attempts: int) -> None:
    async def case(running: Running, subscribers: Subscribers) -> None:
        await running.post({**headers("1", subject="job-1"), "Content-Type": "text/plain"}, b"payload")
        await running.settle()
        assert len(subscribers.seen["a"]) == attempts
        (dead,) = subscribers.seen["sink"]
        assert dead.body == b"payload"
        assert dead.headers["ce-id"] == "1"
        assert dead.headers["ce-knativeerrordest"] == f"{subscribers.url}/a"
        assert dead.headers["ce-knativeerrorcode"] == str(status)
        assert base64.b64decode(dead.headers["ce-knativeerrordata"]) == "n\u00f6\n".encode()
        assert "prefer" not in dead.headers
        assert (await running.runtime.queues())["ns/a"] == Queue(dead=1)
        (entry,) = await running.runtime.history("job-1")
        assert (entry.state, entry.code, entry.failures) == ("dead", status, attempts)

    run(
        tmp_path,
        {"a": answer(status, "n\u00f6\n".encode(), Location="/b"), "sink": answer(202)},
        lambda url: [
            broker(retry=2, deadLetterSink={"uri": f"{url}/sink"}),
            trigger("a", f"{url}/a"),
        ],
        case,
    )


def test_no_answer_and_too_late_answers_are_failures(tmp_path: Path) -> None:
    async def slow(_: Received) -> web.Response:
        await asyncio.sleep(1)
        return web.Response(status=204)

    async def case(running: Running, subscribers: Subscribers) -> None:
        begun = time.monotonic()
        await running.post(headers("1"))
        await running.settle()
        assert time.monotonic() - begun < 0.9
        told = {item.headers["ce-knativeerrordest"]: item.headers for item in subscribers.seen["sink"]}
        late = told[f"{subscribers.url}/slow"]
        assert late["ce-knativeerrorcode"] == "500"
        assert late["ce-knativeerrordata"] == "dispatch%20error:%20no%20answer%20within%200.2%20s"
        assert told["http://127.0.0.1:1/"]["ce-knativeerrordata"].startswith("dispatch%20error:")

    def documents(url: str) -> list[Document]:
        sink = {"uri": f"{url}/sink"}
        return [
            broker(),
            trigger("slow", f"{url}/slow", timeout="PT0.2S", deadLetterSink=sink),
            trigger("nobody", "http://127.0.0.1:1/", retry=1, deadLetterSink=sink),
        ]

    run(tmp_path, {"slow": slow, "sink": answer(204)}, documents, case)


def test_the_dead_letter_sink_is_tried_until_it_takes_the_copy(tmp_path: Path) -> None:
    codes = [503, 204]

    async def sink(_: Received) -> web.Response:
        return web.Response(status=codes.pop(0))

    async def case(running: Running, subscribers: Subscribers) -> None:
        await running.post(headers("1"))
        await asyncio.sleep(0.3)
        assert (await running.runtime.queues())["ns/a"] == Queue(retrying=1)
        await running.settle()
        assert (await running.runtime.queues())["ns/a"] == Queue(dead=1)
        assert len(subscribers.seen["a"]) == 1
        first, second = subscribers.seen["sink"]
        assert first.headers == second.headers

    run(
        tmp_path,
        {"a": answer(422, b"why"), "sink": sink},
        lambda url: [broker(deadLetterSink={"uri": f"{url}/sink"}), trigger("a", f"{url}/a")],
        case,
    )


def test_replay_delivers_a_dead_letter_to_its_subscriber_again(tmp_path: Path) -> None:
    codes = [422, 422, 204]

    async def later(_: Received) -> web.Response:
        return web.Response(status=codes.pop(0))

    async def case(running: Running, subscribers: Subscribers) -> None:
        await running.post(headers("1"))
        await running.settle()
        assert await running.runtime.replay("1") == 1
        await running.settle()
        assert await running.runtime.replay("1") == 1
        await running.settle()
        assert await running.runtime.replay("1") == 0
        assert subscribers.ids("later") == {"1": 3}
        assert subscribers.ids("good") == {"1": 1}
        assert subscribers.ids("sink") == {"1": 2}
        assert (await running.runtime.queues())["ns/later"] == Queue()

    run(
        tmp_path,
        {"later": later, "good": answer(204), "sink": answer(204)},
        lambda url: [
            broker(deadLetterSink={"uri": f"{url}/sink"}),
            trigger("later", f"{url}/later"),
            trigger("good", f"{url}/good"),
        ],
        case,
    )


def test_a_slow_trigger_does_not_hold_up_the_others(tmp_path: Path) -> None:
    peak = now = 0

    async def slow(_: Received) -> web.Response:
        nonlocal peak, now
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.1)
        now -= 1
        return web.Response(status=204)

    async def case(running: Running, subscribers: Subscribers) -> None:
        for number in range(40):
            await running.post(headers(str(number)))
        while len(subscribers.seen["fast"]) < 40:
            await asyncio.sleep(0.005)
        assert len(subscribers.seen["slow"]) < 40
        await running.settle()
        assert len(subscribers.seen["slow"]) == 40
        assert peak == 8

    run(
        tmp_path,
        {"slow": slow, "fast": answer(204)},
        lambda url: [broker(), trigger("slow", f"{url}/slow"), trigger("fast", f"{url}/fast")],
        case,
    )


def test_an_unresolved_destination_waits_without_counting(tmp_path: Path) -> None:
    ready = False

    async def main() -> None:
        nonlocal ready
        async with Subscribers({"a": answer(204)}) as subscribers:
            documents = [broker(retry=0), trigger("a", f"{subscribers.url}/a")]
            async with serving(tmp_path / "db", documents, lambda d: d.url() if ready else None) as running:
                await running.post(headers("1"))
                await asyncio.sleep(0.7)
                assert not subscribers.seen["a"]
                ready = True
                await running.settle()
                (entry,) = await running.runtime.history()
                assert (entry.state, entry.failures) == ("done", 0)

    asyncio.run(main())


def test_attempts_cut_off_by_a_stop_are_made_again_and_not_counted(tmp_path: Path) -> None:
    hold = True

    async def slow(_: Received) -> web.Response:
        while hold:
            await asyncio.sleep(0.02)
        return web.Response(status=204)

    async def main() -> None:
        nonlocal hold
        async with Subscribers({"slow": slow}) as subscribers:
            documents = [broker(retry=0), trigger("slow", f"{subscribers.url}/slow")]
            async with serving(tmp_path / "db", documents) as running:
                await running.post(headers("1"))
                while not subscribers.seen["slow"]:
                    await asyncio.sleep(0.01)
                assert (await running.runtime.queues())["ns/slow"] == Queue(in_flight=1)
                assert not await running.runtime.idle()
            hold = False
            async with serving(tmp_path / "db", documents) as running:
                await running.settle()
                (entry,) = await running.runtime.history()
                assert (entry.state, entry.failures) == ("done", 0)
                assert len(subscribers.seen["slow"]) == 2

    asyncio.run(main())


def test_events_published_from_within(tmp_path: Path) -> None:
    async def case(running: Running, subscribers: Subscribers) -> None:
        event = CloudEvent({"specversion": "1.0", "id": "1", "source": "/cron", "type": "start"})
        assert await running.runtime.publish(event)
        assert not await running.runtime.publish(event, "ns/default")
        with pytest.raises(ValueError, match="no Broker ns/x"):
            await running.runtime.publish(event, "ns/x")
        await running.settle()
        assert subscribers.ids("a") == {"1": 1}

    run(tmp_path, {"a": answer(204)}, lambda url: [broker(), trigger("a", f"{url}/a")], case)


def test_a_clock_that_is_set_back_does_not_hold_deliveries_up(tmp_path: Path) -> None:
    offset = [0.0]

    async def once_busy(received: Received) -> web.Response:
        return web.Response(status=503 if len(subscribers.seen["a"]) == 1 else 204)

    subscribers = Subscribers({"a": once_busy})

    async def main() -> None:
        async with subscribers:
            documents = [broker(), trigger("a", f"{subscribers.url}/a", retry=3, backoffPolicy="linear",
                                           backoffDelay="PT1S")]  # fmt: skip
            running = await start(tmp_path / "db", documents, clock=lambda: time.time() + offset[0])
            assert await running.post(headers("1")) == 202
            while not subscribers.seen["a"]:
                await asyncio.sleep(0.01)
            offset[0] = -7200.0
            await running.settle(15)
            assert len(subscribers.seen["a"]) == 2
            await running.stop()

    asyncio.run(main())


def test_a_delivery_that_breaks_off_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dispatcher, "_BROKEN_WAIT", 0.1)
    broken = [True, True]

    def resolve(destination: Destination) -> str | None:
        if broken:
            broken.pop()
            raise RuntimeError("a bug")
        return destination.url()

    async def main() -> None:
        async with Subscribers({"a": answer(204)}) as subscribers:
            running = await start(tmp_path / "db", [broker(), trigger("a", f"{subscribers.url}/a")], resolve)
            assert await running.post(headers("1")) == 202
            await running.settle()
            assert subscribers.ids("a") == {"1": 1}
            await running.stop()

    asyncio.run(main())
    assert sum("broke off" in record.message for record in caplog.records) == 2
