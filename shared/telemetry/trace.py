"""W3C trace context, level 1 (https://www.w3.org/TR/trace-context/): who called whom, as one short text.

The text travels as the HTTP header and as the CloudEvents extension `traceparent`. Nothing is sampled or sent
from here; the ids tie log lines together, and `spans` says what happened between two of them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)


@dataclass(frozen=True)
class Trace:
    """One span of a trace."""

    trace_id: str
    """32 hex digits, the same in the whole chain."""
    span_id: str
    """16 hex digits, this step's own."""
    sampled: bool = False

    @classmethod
    def new(cls, *, sampled: bool = False) -> Trace:
        """The first span of a new trace."""
        return cls(_random(16), _random(8), sampled)

    def child(self) -> Trace:
        """A span below this one."""
        return replace(self, span_id=_random(8))

    def __str__(self) -> str:
        """The `traceparent` text."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def parse(text: str) -> Trace | None:
    """The caller's span; None when the text is missing or broken, which the standard says starts a new trace."""
    match = _TRACEPARENT.fullmatch(text.strip())
    if not match or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        return None
    if not int(match["trace"], 16) or not int(match["span"], 16):
        return None
    return Trace(match["trace"], match["span"], sampled=bool(int(match["flags"], 16) & 1))


def follow(text: str) -> Trace:
    """A span of our own below the caller's, or a new trace when there is no valid caller."""
    caller = parse(text)
    return caller.child() if caller else Trace.new()


def nearest(extension: str, header: str) -> Trace | None:
    """The span that an event was delivered from.

    The extension holds its producer's span, and a broker that traces puts its own into the header (CloudEvents'
    Distributed Tracing extension). The header's is nearer, but only worth following in the same trace and where
    somebody keeps it.
    """
    source, hop = parse(extension), parse(header)
    if source is None or (hop is not None and hop.sampled and hop.trace_id == source.trace_id):
        return hop
    return source


def _random(size: int) -> str:
    """Hex digits of random bytes, never all zero (the standard's invalid id)."""
    while not int(text := os.urandom(size).hex(), 16):
        pass
    return text
