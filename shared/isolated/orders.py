"""What the helper is told of the frames that are wanted: plain data, on both sides of the socket.

Knows the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FrameOrder:
    pixel_format: str
    """A planar one."""
    width: int
    height: int
    alpha: bool
    slots: int
    """Frames of the ring."""
    frames: int
    """At most so many are expected: the CPU time goes by it."""
    threads: int
    in_memory: bool
    """Whether the decoder reads the whole file at once."""
    start: int | None
    """Tick of the first frame wanted."""
