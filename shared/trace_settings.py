"""Settings of traces: whether spans are kept, and where they go.

A part of `shared.settings`, which reads it. Knows the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.variables import env, one_of, share, text, web_url

_SAMPLERS = ("always_on", "always_off", "traceidratio")
SAMPLERS = (*_SAMPLERS, *(f"parentbased_{name}" for name in _SAMPLERS))

_SECRET = 8
"""Characters from which a header's value may be a secret; shorter ones are words that stand in other places too."""


@dataclass(frozen=True)
class TraceSettings:
    """Traces. Spans are kept where one of the first three is set, else only ids travel (docs/observability.md).

    OTEL_* are OpenTelemetry's own variables; its exporter reads all others of them itself (headers, time-outs,
    compression, certificates, OTEL_BSP_*, OTEL_RESOURCE_ATTRIBUTES).
    """

    endpoint: str = env("OTEL_EXPORTER_OTLP_ENDPOINT", web_url, "")
    """Collector for OTLP over HTTP, `http://host:4318`: its `/v1/traces` is sent to."""
    traces_endpoint: str = env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", web_url, "")
    """The same for traces alone, the whole address."""
    file: str = env("WAKESWAP_TRACE_FILE", text, "")
    """File that spans are appended to instead, as lines of JSON: for one machine."""
    exporter: str = env("OTEL_TRACES_EXPORTER", one_of("otlp", "none"), "")
    """`otlp`: also without an address, to the exporter's own default; `none`: nowhere, whatever else is set."""
    protocol: str = env("OTEL_EXPORTER_OTLP_PROTOCOL", one_of("http/protobuf"), "http/protobuf")
    """The one that is spoken."""
    sampler: str = env("OTEL_TRACES_SAMPLER", one_of(*SAMPLERS), "parentbased_always_on")
    """Which traces are kept; `parentbased_...`: a caller's traceparent decides where there is one."""
    sampler_arg: float = env("OTEL_TRACES_SAMPLER_ARG", share, 1.0)
    """The share of `traceidratio`, 0..1."""
    disabled: str = env("OTEL_SDK_DISABLED", text, "")
    """`true`: nothing is kept, whatever else is set."""
    headers: str = env("OTEL_EXPORTER_OTLP_HEADERS", text, "", secret=True)
    """Read by the exporter itself; kept here only so that no log line shows its values."""
    traces_headers: str = env("OTEL_EXPORTER_OTLP_TRACES_HEADERS", text, "", secret=True)
    """Read by the exporter itself; kept here only so that no log line shows its values."""

    @property
    def kept(self) -> bool:
        """Whether spans go anywhere."""
        if self.exporter == "none" or self.disabled.lower() == "true":
            return False
        return bool(self.endpoint or self.traces_endpoint or self.file or self.exporter)

    def secrets(self) -> list[str]:
        """What no log line may show."""
        entries = f"{self.headers},{self.traces_headers}".split(",")
        values = [entry.partition("=")[2].strip() for entry in entries]
        return [value for value in values if len(value) >= _SECRET]
