"""What is known of a video before a frame of it is decoded: plain data that travels as JSON.

Knows nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass, field

DAMAGE = ("truncated", "frames_damaged")
"""Words for what is broken."""
SIZE_CHANGES, FORMAT_CHANGES = "size_changes", "format_changes"
"""Words for what is whole, and is made like the first picture in the middle."""
_SQUARE = 1.03
"""Pixels that are less oblong than this are square."""


@dataclass(frozen=True)
class Colour:
    """As ITU-T H.273 numbers them; 2 is `unspecified`."""

    full_range: bool = False
    primaries: int = 2
    transfer: int = 2
    matrix: int = 2


@dataclass(frozen=True)
class Other:
    """A stream beside the pictures."""

    kind: str
    """`audio`, `subtitle`, `attachment` (a font, a cover picture) or `data`."""
    codec: str
    index: int
    """In the container."""
    language: str = ""
    """ISO 639-2, as the container says it."""


@dataclass(frozen=True)
class Facts:
    """One video stream, and what lies beside it."""

    container: str
    """`mp4`, `mov`, `mkv`, `webm`, `gif`, `webp` or `png` (animated)."""
    codec: str
    """FFmpeg's name of the codec."""
    profile: str
    pixel_format: str
    """FFmpeg's name, of the decoded frames."""
    index: int
    """Of the video stream in the container."""
    width: int
    """Coded pixels, before the rotation."""
    height: int
    rotation: int
    """Degrees against the clock by which frames are turned to be shown: 0, 90, 180 or 270."""
    sample_aspect: tuple[int, int]
    """Width and height of a coded pixel."""
    time_base: tuple[int, int]
    """Seconds of one tick, as a fraction."""
    start: int
    """Ticks: timestamp of the first frame shown."""
    end: int
    """Ticks: where the last frame stops being shown."""
    frames: int
    """Counted from the packets; a container's own number may be wrong."""
    rate: tuple[int, int]
    """Mean frames a second, as a fraction."""
    depth: int = 8
    """Bits of a sample."""
    alpha: bool = False
    interlaced: bool = False
    colour: Colour = field(default_factory=Colour)
    others: tuple[Other, ...] = ()
    chapters: int = 0
    loops: int = 1
    """How often an animation is played; 0: for ever."""
    damage: tuple[str, ...] = ()
    """Of `DAMAGE`, as far as the container tells."""

    @property
    def seconds(self) -> float:
        return (self.end - self.start) * self.time_base[0] / self.time_base[1]

    @property
    def shown(self) -> tuple[int, int]:
        """Width and height in pixels, upright; pixels need not be square."""
        return (self.height, self.width) if self.rotation % 180 else (self.width, self.height)

    @property
    def stretch(self) -> tuple[float, float]:
        """Across and down, of the upright picture, 1 or more: what makes its pixels square and loses nothing."""
        across, down = self.sample_aspect
        ratio = across / down if across > 0 and down > 0 else 1.0
        ratio = 1 / ratio if self.rotation % 180 else ratio
        if max(ratio, 1 / ratio) < _SQUARE:
            return 1.0, 1.0
        return (ratio, 1.0) if ratio > 1 else (1.0, 1 / ratio)
