"""Spans on their way to OpenTelemetry: to a file, and by OTLP to a real HTTP server."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from shared.settings import Settings
from shared.telemetry.exporting import MOST, Exporter
from shared.telemetry.sdk import Kept
from shared.telemetry.spans import Span
from shared.telemetry.trace import Trace

ROOT = Path(__file__).parents[3]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = Span(
    "swap",
    Trace(TRACE, "1" * 16, sampled=True),
    "2" * 16,
    "consumer",
    1_700_000_000.25,
    1_700_000_001.5,
    {"wakeswap.stage": "swap", "faas.coldstart": True, "wakeswap.device_seconds.cpu": 0.5},
    "store_unavailable",
    (Trace("3" * 32, "4" * 16, sampled=True),),
)


def test_a_file_has_a_line_a_span(tmp_path: Path) -> None:
    path = tmp_path / "traces/spans.jsonl"
    exporter = Exporter(lambda: Kept("swap", str(path)), pause=0)
    for _ in range(3):
        exporter(SPAN)
    exporter.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 3
    assert lines[0]["context"] == {"trace_id": f"0x{TRACE}", "span_id": f"0x{'1' * 16}", "trace_state": "[]"}
    assert lines[0]["parent_id"] == f"0x{'2' * 16}"
    assert (lines[0]["start_time"], lines[0]["end_time"]) == (
        *("2023-11-14T22:13:20.250000Z", "2023-11-14T22:13:21.500000Z"),
    )
    assert lines[0]["status"] == {"status_code": "ERROR", "description": "store_unavailable"}
    assert lines[0]["attributes"]["error.type"] == "store_unavailable"
    assert lines[0]["links"][0]["context"]["trace_id"] == f"0x{'3' * 32}"
    assert lines[0]["resource"]["attributes"]["service.name"] == "swap"
    assert path.stat().st_mode & 0o077 == 0


class Collector:
    """As much of one as takes in traces."""

    def __init__(self) -> None:
        taken = self.taken = []  # type: list[tuple[str, str, ExportTraceServiceRequest]]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                found = ExportTraceServiceRequest.FromString(body)
                taken.append((self.path, self.headers.get("x-scope", ""), found))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


def test_a_collector_gets_them_by_otlp_as_the_standard_variables_say(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope=acme")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.namespace=ours")
    exporter = Exporter(lambda: Kept("swap"), pause=0)
    exporter(SPAN)
    exporter.close()
    ((path, scope, request),) = collector.taken
    assert (path, scope) == ("/v1/traces", "acme")
    (resource,) = request.resource_spans
    facts = {item.key: item.value.string_value for item in resource.resource.attributes}
    assert (facts["service.name"], facts["service.namespace"]) == ("swap", "ours")
    assert facts["deployment.environment.name"] == "test"
    (span,) = resource.scope_spans[0].spans
    assert (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()) == (TRACE, "1" * 16, "2" * 16)
    assert span.kind == span.SPAN_KIND_CONSUMER
    assert span.start_time_unix_nano / 1e9 == pytest.approx(SPAN.started, abs=1e-6)
    assert span.end_time_unix_nano / 1e9 == pytest.approx(SPAN.ended, abs=1e-6)


def test_a_collector_that_is_gone_costs_spans_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    exporter = Exporter(lambda: Kept("swap"), pause=0)
    exporter(SPAN)
    exporter.close()


def test_spans_that_nobody_fetches_are_dropped_and_never_waited_for() -> None:
    holding, seen = threading.Event(), []

    class Slow:
        def keep(self, span: Span) -> None:
            holding.wait(60)
            seen.append(span)

        def close(self) -> None: ...

    exporter = Exporter(Slow, pause=0)
    for _ in range(MOST + 500):
        exporter(SPAN)
    holding.set()
    exporter.close()
    assert MOST <= len(seen) <= MOST + 1


def test_the_sdk_is_not_imported_before_the_first_span_has_ended() -> None:
    code = """
import sys
from shared.serving import tracing
from shared.settings import Settings
settings = Settings.from_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
tracer = tracing.open_tracer(settings.traces, "swap")
assert tracer.sink is not None
with tracer.span("swap", None, "consumer"):
    print(any(name.startswith("opentelemetry") for name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://collector/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"WAKESWAP_TRACE_FILE": "spans.jsonl"}, True),
        ({"WAKESWAP_TRACE_FILE": "spans.jsonl", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_spans_are_kept_where_an_exporter_is_set(variables: dict[str, str], kept: bool) -> None:
    assert Settings.from_environment(variables).traces.kept is kept


def test_sec_06_a_collectors_token_shows_in_no_log_line() -> None:
    settings = Settings.from_environment({"OTEL_EXPORTER_OTLP_HEADERS": "authorization=t0ken-of-the-collector,a=b"})
    assert "t0ken-of-the-collector" in settings.secrets()
    assert "b" not in settings.secrets(), "a word that every line holds"
    assert "t0ken" not in repr(settings)
