"""What a video is, for bytes from outside: `shared.video.probe` with its libraries held apart.

Loads neither PyAV nor numpy. Knows the facts and the helper.
"""

from __future__ import annotations

from pathlib import Path

from shared import records
from shared.isolated import limits as caps
from shared.isolated.helper import Helper
from shared.isolated.wire import FACTS, Task
from shared.rejections import MediaCorruptError
from shared.video.facts import Facts

_helper = Helper(FACTS, "shared.isolated.films")
_MOST = 2**62


def facts(path: Path, *, max_pixels: int, max_seconds: int, max_frames: int) -> Facts:
    """The facts of the video file at `path`, in a process of its own.

    Raises what `shared.video.probe.probe` raises; MediaCorruptError with `context["reason"]` `crash`, `memory` or
    `time` where no demuxer gets through it within its limits; TransientError when there is no helper.
    """
    task = Task(FACTS, max_pixels, 0, 0, {"max_seconds": max_seconds, "max_frames": max_frames})
    with path.open("rb", buffering=0) as file:
        seconds = caps.for_facts(path.stat().st_size, max_pixels).wall
        found = _helper.ask_of(task, file.fileno(), seconds)
    try:
        told = records.read(Facts, found.get("facts"))
    except records.RecordError:
        raise MediaCorruptError from None
    if not _possible(told, max_pixels, max_frames):
        raise MediaCorruptError
    return told


def _possible(told: Facts, max_pixels: int, max_frames: int) -> bool:
    """Whether the rest of us can rely on it: what hostile bytes ran in is not believed."""
    ratios = (told.time_base, told.rate, told.sample_aspect)
    return (
        0 < told.width * told.height <= max_pixels
        and min(told.width, told.height) > 0
        and 0 < told.frames <= max_frames
        and all(0 < number < _MOST for ratio in ratios for number in ratio)
        and -_MOST < told.start < told.end < _MOST
        and told.rotation in (0, 90, 180, 270)
    )
