"""What a decoder may take: memory, seconds, bytes written; nothing else opened, no core left behind.

Knows the operating system's limits of a process and nothing of pictures but their number of pixels.
"""

from __future__ import annotations

import resource
import signal
from dataclasses import dataclass
from pathlib import Path

_MB = 2**20
_PAGE = resource.getpagesize()
_SLACK = 256 * _MB
"""For the library's threads and tables."""
_PER_PIXEL = 40
"""Bytes of address space. A 16-bit TIFF takes the most: 8 as read, 12 while it is scaled, 11 as it leaves."""
_VIDEO_SLACK = 768 * _MB
"""As above; FFmpeg's threads take 8 MB of address space each, and their arenas more."""
_FIRST_FRAME, _IN_FLIGHT, _WIDEST = 60, 32, 8
"""Bytes a pixel while a first frame is decoded in one thread; frames in a decoder; bytes of a pixel of 16 bits."""
_WALL = 4.0
"""Seconds on the clock for a second of CPU, on a machine that is busy with other things."""
_PATIENCE = 20.0
"""Seconds on the clock beside that."""


@dataclass(frozen=True)
class Caps:
    memory: int
    """Bytes of address space beyond what the process has already."""
    cpu: int
    """Seconds."""
    written: int
    """Bytes of the largest file."""

    @property
    def wall(self) -> float:
        """Seconds on the clock."""
        return self.cpu * _WALL + _PATIENCE


def for_header(size: int) -> Caps:
    """For reading the headers of a file of `size` bytes."""
    return Caps(2 * size + _SLACK, 5, 0)


def for_pixels(size: int, pixels: int) -> Caps:
    """For decoding a file of `size` bytes to so many pixels (HEIC takes 0.035 s of CPU for a million)."""
    return Caps(3 * size + _SLACK + _PER_PIXEL * pixels, 10 + pixels // 2_000_000, 4 * pixels)


def for_facts(size: int, pixels: int) -> Caps:
    """For reading a video of `size` bytes to its end and decoding its first frame, of at most so many pixels."""
    return Caps(_VIDEO_SLACK + _FIRST_FRAME * pixels, 20 + size // 20_000_000, 0)


def for_frames(size: int, pixels: int, frames: int) -> Caps:
    """For decoding so many frames of so many pixels; `size`: bytes of the file, where it must be in memory, else 0.

    A decoder holds up to 16 frames to which others refer, one for each thread and some that wait to be shown. The
    slowest that we met took 0.1 s of CPU for a frame of 8 million pixels.
    """
    seconds = frames * (0.05 + pixels / 8_000_000)
    return Caps(_VIDEO_SLACK + 2 * size + _IN_FLIGHT * _WIDEST * pixels, 20 + int(seconds), 0)


def patience(pixels: int) -> float:
    """Seconds on the clock for the next frame."""
    return 2 * _PATIENCE + pixels / 1_000_000


def confine(caps: Caps, used: int) -> None:
    """Hold this process to `caps`; `used`: what `address_space` said. A second call may raise them.

    From the first call on no file can be opened.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _soft(resource.RLIMIT_NOFILE, 0)
    _soft(resource.RLIMIT_AS, used + caps.memory)
    _soft(resource.RLIMIT_FSIZE, caps.written)
    _soft(resource.RLIMIT_CPU, caps.cpu)
    signal.setitimer(signal.ITIMER_REAL, caps.wall)


def _soft(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def address_space() -> int:
    """Bytes that this process has, by Linux's /proc; elsewhere 0, so that it gets no more than its caps in all."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * _PAGE if statm.exists() else 0
