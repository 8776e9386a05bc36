"""Our spans in OpenTelemetry's terms, and the SDK's exporters: OTLP over HTTP, or lines of JSON in a file.

The only importer of opentelemetry, itself imported only by the thread of `exporting`. Resource, batching, headers,
compression and time-outs are read from the standard OTEL_* variables by the SDK itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from shared.telemetry.spans import Span
from shared.telemetry.trace import Trace

_SCOPE = InstrumentationScope("wakeswap")
_NANO = 1_000_000_000


class Kept:
    """Spans of one process on their way. `file` empty: to the collector that OTEL_EXPORTER_OTLP_* name."""

    def __init__(self, service: str, file: str = "") -> None:
        self._resource = resource(service)
        self._processor = _processor(file)

    def keep(self, span: Span) -> None:
        self._processor.on_end(readable(span, self._resource))

    def close(self) -> None:
        self._processor.shutdown()


def resource(service: str) -> Resource:
    """Who speaks: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over what we know."""
    own = {
        "service.name": service,
        "service.namespace": "wakeswap",
        "service.instance.id": f"{os.uname().nodename}:{os.getpid()}",
        "faas.name": service,
    }
    return Resource.create(own).merge(OTELResourceDetector().detect())


def readable(span: Span, of: Resource) -> ReadableSpan:
    parent = Trace(span.trace.trace_id, span.parent, span.trace.sampled) if span.parent else None
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace, remote=False),
        parent=_context(parent, remote=span.kind in ("server", "consumer")) if parent else None,
        resource=of,
        attributes=dict(span.facts) | ({"error.type": span.failed} if span.failed else {}),
        links=[Link(_context(link, remote=True)) for link in span.links],
        kind=SpanKind[span.kind.upper()],
        status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(),
        start_time=round(span.started * _NANO),
        end_time=round(span.ended * _NANO),
        instrumentation_scope=_SCOPE,
    )


class FileExporter(SpanExporter):
    """One JSON object a line, in the SDK's own form; several processes may write to one file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        data = "".join(span.to_json(indent=None) + "\n" for span in spans).encode()
        try:
            whole = os.write(self._file, data) == len(data)
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS if whole else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        os.close(self._file)


def _processor(file: str) -> SpanProcessor:
    if file:
        return SimpleSpanProcessor(FileExporter(Path(file)))
    return BatchSpanProcessor(OTLPSpanExporter())


def _context(trace: Trace, *, remote: bool) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if trace.sampled else TraceFlags.DEFAULT)
    return SpanContext(int(trace.trace_id, 16), int(trace.span_id, 16), is_remote=remote, trace_flags=flags)
