"""What a fork of the helper does with a hostile video: tell its facts, or decode its frames into a ring.

Imported by the helper only, so that everything a decoder needs is loaded before nothing more can be opened: what is
imported within the functions here was loaded by `load`. A helper for facts loads no numpy. Knows the videos and the
limits.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from shared import records
from shared.errors import JsonValue, RejectedError
from shared.isolated import limits as caps
from shared.isolated.orders import FrameOrder
from shared.isolated.wire import FACTS, FRAMES, Task, write_all
from shared.video.source import Source

if TYPE_CHECKING:
    from shared.isolated.ring import Ring
    from shared.video.decode import Decoded

_LATE = ("av.subtitles.stream", "av.subtitles.codeccontext")
"""What PyAV imports only when it meets a stream of that kind."""
_LOADED = {
    FACTS: ("shared.video.probe", *_LATE),
    FRAMES: ("shared.video.decode", "shared.video.scenes", "shared.isolated.ring", "PIL.WebPImagePlugin", *_LATE),
}


def load(name: str) -> None:
    """Import what a task needs, in the helper itself."""
    for module in _LOADED[name]:
        import_module(module)


def run(task: Task, source: int, planes: int, line: int) -> JsonValue:
    """The answer, a JSON object: the facts or what damage was found, or the error of our tree."""
    try:
        return _facts(task, Source(source)) if task.name == FACTS else _frames(task, Source(source), planes, line)
    except RejectedError as error:
        return {"error": error.code, "detail": error.detail, "context": error.context}
    except MemoryError:
        return {"memory": True}


def _facts(task: Task, source: Source) -> JsonValue:
    from shared.video.probe import Bounds, probe

    caps.confine(caps.for_facts(source.size, task.max_pixels), caps.address_space())
    bounds = records.read(Bounds, dict(task.words) | {"max_pixels": task.max_pixels})
    return {"facts": records.write(probe(source, bounds))}


def _frames(task: Task, source: Source, planes: int, line: int) -> JsonValue:
    from shared.isolated.ring import Ring
    from shared.video.decode import Damage, Wanted, frames

    order = records.read(FrameOrder, dict(task.words))
    ring = Ring(planes, order.slots, order.pixel_format, (order.width, order.height))
    pixels = order.width * order.height
    held = source.size if order.in_memory else 0
    caps.confine(caps.for_frames(held, pixels, order.frames), caps.address_space())
    wanted = Wanted(order.pixel_format, order.width, order.height, order.alpha, order.threads, order.start)
    damage = Damage()
    with suppress(_EnoughError):
        _deliver(frames(source, wanted, damage), ring, order, line)
    return {"truncated": damage.truncated, "lost": damage.lost, "changes": [*sorted(damage.changes)]}


class _EnoughError(Exception):
    """Nobody wants more frames."""


def _deliver(found: Iterator[Decoded], ring: Ring, order: FrameOrder, line: int) -> None:
    from shared.video.formats import layout
    from shared.video.scenes import Cuts

    cuts, free = Cuts(layout(order.pixel_format).depth), order.slots
    patience = caps.patience(order.width * order.height)
    signal.setitimer(signal.ITIMER_REAL, patience)
    for number, frame in enumerate(found):
        if not free:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the parent may take its time
            free = _freed(line)
        for kept, plane in zip(ring.planes(number), frame.planes, strict=True):
            kept[:] = plane
        times = {"frame": number, "pts": frame.pts, "duration": frame.duration}
        _say(line, {**times, "key": frame.key, "damaged": frame.damaged, "cut": cuts(frame.planes[0])})
        free -= 1
        signal.setitimer(signal.ITIMER_REAL, patience)


def _freed(line: int) -> int:
    """Wait until the parent is done with frames: it says one byte for each."""
    try:
        freed = len(os.read(line, 4096))
    except ConnectionResetError:
        freed = 0
    if not freed:
        raise _EnoughError
    return freed


def _say(line: int, words: Mapping[str, JsonValue]) -> None:
    try:
        write_all(line, json.dumps(words).encode() + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        raise _EnoughError from None
