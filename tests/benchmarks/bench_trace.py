"""What traces cost: CPU of one event's spans, and of a real process per event and wake, with and without them.

    python -m tests.benchmarks.bench_trace

- spans: in this process, the two spans of one event (the stage's and its work), in the event's own thread: with no
  exporter, and handed to one; and what the exporter's thread then does for them (the SDK's JSON into a file).
- process: a stage that does nothing (tests/services/relay), so that only the harness is measured: CPU over EVENTS
  events on one connection, after as many to warm up, and over its start until it has answered the first. The collector
  is an HTTP server in this process that takes what comes. Kinds take turns over ROUNDS; the least counts, since other
  work on the machine only adds. Two kinds that differ by less than a fifth are equal on a busy machine.

The last line is JSON.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

from shared.serving import tracing
from shared.telemetry.sampling import sampler, unsampled
from shared.telemetry.spans import Span, Tracer, inside
from tests.benchmarks.timing import cpu_ms
from tests.services.process import StageProcess, running, send
from tests.unit.serving.support import event, job

EVENTS, ROUNDS = 400, 4
MANY = 1000
EVENT = event(job("pass"))


def main() -> int:
    spans = of_spans()
    for what, seconds in spans.items():
        print(f"{what:<40}{seconds * 1e6:>9.1f} us an event")
    with collector() as address:
        kinds: dict[str, dict[str, str]] = {
            "none": {},
            "file": {"WAKESWAP_TRACE_FILE": "spans.jsonl"},
            "otlp": {"OTEL_EXPORTER_OTLP_ENDPOINT": address},
            "otlp, a tenth": {
                "OTEL_EXPORTER_OTLP_ENDPOINT": address,
                "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
                "OTEL_TRACES_SAMPLER_ARG": "0.1",
            },
        }
        found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for _ in range(ROUNDS):
            for kind, environ in kinds.items():
                found[kind].append(measured(environ))
    least = {kind: tuple(min(values) for values in zip(*tries, strict=True)) for kind, tries in found.items()}
    print(f"{'spans go':<16}{'CPU an event':>14}{'CPU to the first answer':>26}")
    for kind, (each, first) in least.items():
        print(f"{kind:<16}{each * 1000:>11.2f} ms{first * 1000:>23.0f} ms")
    kinds_ms = {kind: {"event_ms": each * 1000, "wake_ms": first * 1000} for kind, (each, first) in least.items()}
    print(json.dumps({"spans_us": {what: seconds * 1e6 for what, seconds in spans.items()}, "process": kinds_ms}))
    return 0


def of_spans() -> dict[str, float]:
    """Seconds of CPU by what is done, each for the spans of one event."""
    from shared.telemetry.sdk import Kept  # what a process without an exporter never imports

    kept: list[Span] = []
    ids, traced = Tracer(unsampled), Tracer(sampler("parentbased_always_on"), kept.append)
    with tempfile.TemporaryDirectory() as folder:
        keeper = Kept("bench", f"{folder}/spans.jsonl")
        found = {
            "no exporter: ids only": cpu_ms(lambda: [one_event(ids) for _ in range(MANY)], 5) / 1000 / MANY,
            "an exporter: made and handed over": cpu_ms(lambda: [one_event(traced) for _ in range(MANY)], 5)
            / 1000
            / MANY,
        }
        pair = kept[:2]
        written = cpu_ms(lambda: [keeper.keep(span) for _ in range(MANY) for span in pair], 5) / 1000 / MANY
        keeper.close()
    return {**found, "the exporter's thread: into a file": written}


def one_event(tracer: Tracer) -> None:
    with tracing.of_event(tracer, "relay", EVENT, {}), inside("work"):
        pass


def measured(environ: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of CPU: of one event, and from the start to the first answer."""
    with tempfile.TemporaryDirectory(prefix="bench-trace-") as folder:
        own = {name: value.replace("spans.jsonl", f"{folder}/spans.jsonl") for name, value in environ.items()}
        with running("relay", Path(folder), **own) as process:
            process.wait_ready()
            first = deliver(process, 1)
            deliver(process, EVENTS)
            time.sleep(1)  # what a thread still has to do belongs to the warming up
            begun = cpu(process)
            deliver(process, EVENTS)
            time.sleep(6)  # a batch of spans is sent at most 5 s later
            return (cpu(process) - begun) / EVENTS, first


def deliver(process: StageProcess, count: int) -> float:
    """The worker's CPU when the last one is answered."""
    with closing(process.connect()) as connection:
        for _ in range(count):
            answer = send(connection, event(job("pass"), event_id=str(uuid.uuid4())))
            assert answer.status == 200, (answer.status, answer.body)
        return cpu(process)


def cpu(process: StageProcess) -> float:
    every = [psutil.Process(process.process.pid), *psutil.Process(process.process.pid).children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in every)


@contextmanager
def collector() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    raise SystemExit(main())
