"""How a video is divided: written once by split, read by every stage that works on a segment.

Plain data that travels as JSON. Knows the facts and the payloads.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.events.payloads import ObjectRef
from shared.video.facts import Facts


@dataclass(frozen=True)
class Part:
    """Own frames are those with `start` <= pts < `end`, in ticks of the video's time base.

    Ticks of all parts are moved by one number where the video has times before zero: `parts[0].start - facts.start`.
    """

    clip: ObjectRef
    """Matroska: the packets as they are in the target. A timestamp in it, as a whole number, is a tick: what the file
    says of its time base does not count. It may begin with frames of the part before (`pts` < `start`), which give
    filters their past: tracked, and never written. An animated picture is one part: the file itself."""
    start: int
    end: int
    frames: int
    """Own frames."""
    cut: bool
    """Whether a new scene begins with it; then it has no frames of the part before."""


@dataclass(frozen=True)
class Plan:
    facts: Facts
    parts: tuple[Part, ...]
    window: int
    """Parts under way at once."""
    alone: bool = False
    """Whether the parts go one by one until it is known who is in the video: faces are chosen by who they are."""
