"""Which traces are kept: OpenTelemetry's built-in samplers, decided where a trace begins.

The decision travels in `traceparent`, so it must fall before the SDK is there (see `exporting`). Pure.
"""

from __future__ import annotations

from dataclasses import replace

from shared.telemetry.spans import Sampler
from shared.telemetry.trace import Trace

_LOW = 2**64
_PARENT = "parentbased_"


def unsampled(caller: Trace | None) -> Trace:
    """For processes that keep no spans: ids only, and the caller's own decision handed on."""
    return caller.child() if caller else Trace.new()


def sampler(name: str, ratio: float = 1.0) -> Sampler:
    """`name`: a value of OTEL_TRACES_SAMPLER; `ratio`: of all traces, for those that have one.

    A part of the traces is chosen by their ids, as the SDK's TraceIdRatioBased does it: all processes with the same
    ratio keep the same ones.
    """
    kind = name.removeprefix(_PARENT)
    share = {"always_on": 1.0, "always_off": 0.0, "traceidratio": ratio}[kind]
    bound = round(share * _LOW)

    def sample(caller: Trace | None) -> Trace:
        span = unsampled(caller)
        if caller is not None and name.startswith(_PARENT):
            return span
        return replace(span, sampled=int(span.trace_id, 16) % _LOW < bound)

    return sample
