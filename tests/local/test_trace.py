"""The trace of one job, from the request to the webhook, over every process that worked on it."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shared.telemetry.trace import parse
from tests.local.machine import Machine
from tests.local.test_pipeline import FACE, drop, post
from tests.local.trace_job import keeping, notify, prepared, upload

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
STAGES = ("moderate", "detect", "swap", "publish", "notify")
CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"


class Webhook:
    """A receiver that keeps the headers of what it is told."""

    def __init__(self, status: int = 204) -> None:
        told = self.told = []  # type: list[dict[str, str]]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                told.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tenants(self, **policy: Any) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.server.server_port}/hook"
        return {"demo": {"webhook": {"url": url, "allow_local": True}, "policy": policy}}


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook()
    yield webhook
    webhook.server.shutdown()
    webhook.server.server_close()


def spans(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def of_trace(file: Path, trace: str) -> list[dict[str, Any]]:
    return [span for span in spans(file) if span["context"]["trace_id"] == f"0x{trace}"]


def test_one_trace_from_the_request_to_the_webhook_with_each_cold_start(tmp_path: Path, webhook: Webhook) -> None:
    file = tmp_path / "spans.jsonl"
    one = Machine(tmp_path, keeping(file), tenants=webhook.tenants(), idle=2)
    one.up()
    try:
        status, _ = post(
            one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg", traceparent=f"00-{CALLER}-{'1' * 16}-01"
        )
        assert status == 200
        one.until(lambda: bool(webhook.told) and one.asleep(), 90)
    finally:
        one.down()
    found = of_trace(file, CALLER)
    told = parse(webhook.told[0]["traceparent"])
    assert told is not None
    assert told.trace_id == CALLER
    _is_whole(found, told.span_id, "POST /v1/jobs", STAGES, f"0x{'1' * 16}")
    server = next(span for span in found if span["kind"] == "SpanKind.SERVER")
    assert (server["name"], server["parent_id"]) == ("POST /v1/jobs", f"0x{'1' * 16}")


def test_one_trace_from_an_upload_to_the_webhook_through_every_stage(
    tmp_path: Path, webhook: Webhook, model_files: Callable[[str], object]
) -> None:
    """As docs/trace.svg shows it; nobody gave it a trace to go on from."""
    for name in ("centerface", "face_mesh", "open_nsfw", "pp_ocr_v6_small"):
        model_files(name)
    file = tmp_path / "spans.jsonl"
    one = prepared(tmp_path, file, webhook.tenants())
    one.up()
    try:
        notify(one, upload(one))
        one.until(lambda: bool(webhook.told) and one.asleep(), 120)
    finally:
        one.down()
    told = parse(webhook.told[0]["traceparent"])
    assert told is not None
    found = of_trace(file, told.trace_id)
    _is_whole(
        found, told.span_id, "POST /events/s3", ("moderate", "detect", "swap", "enhance", "publish", "notify"), None
    )
    (job,) = {span["attributes"]["wakeswap.job"] for span in found if span["name"] in STAGES}
    assert job in one.outcomes()


def _is_whole(
    found: list[dict[str, Any]], webhook_span: str, door: str, stages: Sequence[str], above: str | None
) -> None:
    """Every stage once, below the one before it; a cold start before each; nothing below a span that is not there but
    what is below `above`, the span of a caller."""
    by_id = {span["context"]["span_id"]: span for span in found}
    assert len(by_id) == len(found)
    consumers = [span for span in found if span["kind"] == "SpanKind.CONSUMER"]
    assert Counter(span["name"] for span in consumers) == Counter([*stages, *EXTRA])
    at = {span["name"]: span for span in consumers}
    assert [by_id[at[name]["parent_id"]]["name"] for name in stages] == [door, *stages[:-1]]
    services = {span["resource"]["attributes"]["service.name"] for span in found if span["name"] == "cold start"}
    assert services == {"intake", "meter", *stages}
    for cold in (span for span in found if span["name"] == "cold start"):
        service = cold["resource"]["attributes"]["service.name"]
        (first, *_) = sorted(
            (
                span for span in found
                if span["attributes"].get("faas.coldstart") and span is not cold
                and span["resource"]["attributes"]["service.name"] == service
                and span["start_time"] >= cold["end_time"]
            ),
            key=lambda span: span["start_time"],
        )  # fmt: skip
        assert cold["start_time"] < cold["end_time"]
        assert cold["parent_id"] == first["parent_id"], "the event that it was for"
    below = defaultdict(set)
    for span in found:
        if span["parent_id"] in by_id:
            below[by_id[span["parent_id"]]["name"]].add(span["name"])
        else:
            assert span["parent_id"] == above
    assert {"load model", "warm model", "import"} <= below["cold start"]
    assert below["notify"] >= {"work"}
    (hook,) = (span for span in found if span["kind"] == "SpanKind.CLIENT")
    assert (hook["context"]["span_id"], hook["attributes"]["http.response.status_code"]) == (f"0x{webhook_span}", 204)
    for span in found:
        if span["parent_id"] in by_id and span["name"] != "cold start":
            assert span["start_time"] >= by_id[span["parent_id"]]["start_time"]
    assert {span["status"]["status_code"] for span in found} == {"UNSET"}


EXTRA = ("meter", "intake")
"""What else hears of a job's end."""


def test_a_job_that_waits_in_the_line_goes_on_in_its_own_trace(tmp_path: Path, webhook: Webhook) -> None:
    file = tmp_path / "spans.jsonl"
    one = Machine(tmp_path, keeping(file), tenants=webhook.tenants(max_concurrent=1), idle=2)
    one.up()
    try:
        drop(one, 3)
        one.until(lambda: len(webhook.told) == 3 and one.asleep(), 120)
    finally:
        one.down()
    traces = {told["webhook-id"].partition(".")[0]: told["traceparent"].split("-")[1] for told in webhook.told}
    assert len(set(traces.values())) == 3, "each upload has its own"
    left = [span for span in spans(file) if span["name"] == "leave the line"]
    assert len(left) == 2
    for job, trace in traces.items():
        stages = {span["name"] for span in of_trace(file, trace) if span["attributes"].get("wakeswap.job") == job}
        assert stages >= set(STAGES)
    for span in left:
        (link,) = span["links"]
        assert link["context"]["trace_id"] != span["context"]["trace_id"], "it left by another job's end"
