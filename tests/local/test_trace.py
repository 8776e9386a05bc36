"""The trace of one job, from the request to the webhook, over every process that worked on it."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shared.telemetry.trace import parse
from tests.local.machine import Change, Machine
from tests.local.test_pipeline import FACE, drop, post

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
STAGES = ("moderate", "detect", "swap", "publish", "notify")
CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"


def keeping(file: Path) -> Change:
    """Have every function write its spans to `file`."""

    def change(docs: list[dict[str, Any]]) -> None:
        for doc in docs:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
                doc["data"]["WAKESWAP_TRACE_FILE"] = str(file)

    return change


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
    _is_whole(found, told.trace_id, told.span_id)
    server = next(span for span in found if span["kind"] == "SpanKind.SERVER")
    assert (server["name"], server["parent_id"]) == ("POST /v1/jobs", f"0x{'1' * 16}")


def _is_whole(found: list[dict[str, Any]], trace: str, webhook_span: str) -> None:
    """Every stage once, below the one before it; a cold start before each; nothing below a span that is not there."""
    assert trace == CALLER
    by_id = {span["context"]["span_id"]: span for span in found}
    assert len(by_id) == len(found)
    stages = {span["name"]: span for span in found if span["kind"] == "SpanKind.CONSUMER"}
    assert Counter(span["name"] for span in found if span["kind"] == "SpanKind.CONSUMER") == Counter([*STAGES, *EXTRA])
    chain = [by_id[stages[name]["parent_id"]]["name"] for name in STAGES]
    assert chain == ["POST /v1/jobs", *STAGES[:-1]]
    services = {span["resource"]["attributes"]["service.name"] for span in found if span["name"] == "cold start"}
    assert services == {"intake", "meter", *STAGES}
    for cold in (span for span in found if span["name"] == "cold start"):
        (same,) = (
            span for span in found
            if span["resource"]["attributes"]["service.name"] == cold["resource"]["attributes"]["service.name"]
            and span["attributes"].get("faas.coldstart") and span is not cold
        )  # fmt: skip
        assert cold["start_time"] < cold["end_time"] <= same["start_time"]
        assert cold["parent_id"] == same["parent_id"]
    below = defaultdict(set)
    for span in found:
        if span["parent_id"] in by_id:
            below[by_id[span["parent_id"]]["name"]].add(span["name"])
        else:
            assert span["parent_id"] == f"0x{'1' * 16}"
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
