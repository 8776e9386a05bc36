"""Clips become one animated picture: GIF, WebP or PNG, frame by frame, with their durations and transparency.

The clips are lossless and ours, so that they may be decoded here, and twice: a GIF gets one palette for all of its
frames, which keeps still parts still. Knows PyAV, Pillow and the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import av.filter
import numpy as np
from PIL import Image

from shared.video import media
from shared.video.choosing import ANIMATIONS, Target, finished
from shared.video.delays import HASTY
from shared.video.facts import Facts
from shared.video.faults import EncodeFailedError
from shared.video.plan import Plan
from shared.video.turning import upright

_GIF_TICK, _TICK = Fraction(1, 100), Fraction(1, 1000)
_USE = "dither=sierra2_4a:diff_mode=rectangle:alpha_threshold=128"


def animate(clips: Sequence[Path], plan: Plan, out: Path, choice: Target, quality: int) -> tuple[str, ...]:
    """Write `out` of the frames of `clips`; `quality` 1..100 counts for WebP.

    It is turned upright, and its pixels are square. It is played as often as the source, or for ever where the source
    is no animated picture. Gives the warning `frames_dropped` where frames follow sooner than players would show them:
    more than 50 a second in a GIF, 90 in others. Raises EncodeFailedError.
    """
    shots = _Shots(clips, plan, choice)
    if not plan.facts.damage and shots.count != sum(part.frames for part in plan.parts):
        raise EncodeFailedError(f"The clips hold {shots.count} pictures.")
    dropped = shots.thin(_GIF_TICK if choice.container == "gif" else _TICK)
    try:
        match choice.container:
            case "gif":
                _gif(shots, out, _again(plan.facts))
            case "webp":
                _webp(shots, out, _again(plan.facts), quality)
            case _:
                _png(shots, out, _again(plan.facts))
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise EncodeFailedError("The animation could not be written.", context={"reason": str(error)[:200]}) from error
    return ("frames_dropped",) if dropped else ()


def _again(facts: Facts) -> int:
    """How often it is played, 0 for ever."""
    return facts.loops if facts.container in ANIMATIONS else 0


class _Shots:
    """The frames of all clips with their times, as often as they are asked for. Raises EncodeFailedError for none."""

    def __init__(self, clips: Sequence[Path], plan: Plan, choice: Target) -> None:
        self._clips, self._pixels = [*filter(media.is_filled, clips)], "bgra" if choice.alpha else "bgr24"
        self._size, self._rotation = finished(plan.facts, choice), plan.facts.rotation
        tick = Fraction(*plan.facts.time_base)
        ticks = sorted(at for clip in self._clips for at in _ticks(clip))
        if not ticks:
            raise EncodeFailedError("No clip holds a picture.")
        self.count, self._kept = len(ticks), frozenset(range(len(ticks)))
        start, end = plan.parts[0].start, max(plan.parts[-1].end, ticks[-1])
        self.times = [(at - start) * tick for at in (*ticks, end)]
        """Seconds at which each frame is shown, and at which the last one ends."""

    def __iter__(self) -> Iterator[av.VideoFrame]:
        """As they are shown, in a format of whole pixels, with transparency where the video has any."""
        width, height = reversed(self._size) if self._rotation % 180 else self._size
        for number, frame in enumerate(self._decoded()):
            if number in self._kept:
                yield self._turned(frame.reformat(width, height, self._pixels))

    def _decoded(self) -> Iterator[av.VideoFrame]:
        for path in self._clips:
            with av.open(str(path)) as clip:
                yield from clip.decode(video=0)

    def thin(self, tick: Fraction) -> bool:
        """Leave out frames that follow so soon that none would be shown for its time; whether there are any."""
        least = HASTY * _TICK // tick + 1
        places = [round(at / tick) for at in self.times]
        kept = [0]
        for number, place in enumerate(places[1:-1], 1):
            if place - places[kept[-1]] >= least:
                kept.append(number)
        end = max(self.times[-1], self.times[kept[-1]] + least * tick)
        self.times, self._kept = [*(self.times[number] for number in kept), end], frozenset(kept)
        return len(kept) < self.count

    def _turned(self, frame: av.VideoFrame) -> av.VideoFrame:
        if not self._rotation:
            return frame
        pixels = frame.to_ndarray().astype(np.uint8, copy=False)
        return av.VideoFrame.from_ndarray(upright(pixels, self._rotation), self._pixels)

    @property
    def seconds(self) -> list[Fraction]:
        """That each frame is shown for."""
        return [end - start for start, end in pairwise(self.times)]


def _ticks(path: Path) -> list[int]:
    with media.reading(path) as clip:
        return [packet.pts for packet in media.packets(clip, media.video(clip)) if packet.pts is not None]


def _gif(shots: _Shots, out: Path, again: int) -> None:
    places = [round(at / _GIF_TICK) for at in shots.times]
    loop = {"loop": str(again - 1 if again != 1 else -1) if again else "0"}
    options = {**loop, "final_delay": str(places[-1] - places[-2])}
    palette = _palette(shots)
    made = av.open(str(out), "w", format="gif", container_options=options)
    with made:
        stream = made.add_stream("gif", rate=100)
        base = next(iter(shots))
        stream.width, stream.height, stream.pix_fmt = base.width, base.height, "pal8"
        stream.codec_context.time_base = stream.time_base = _GIF_TICK
        graph = _Painting(base, palette)
        for place, frame in zip(places, shots, strict=False):
            frame.pts, frame.time_base = place, _GIF_TICK
            made.mux([packet for painted in graph.paint(frame) for packet in stream.encode(painted)])
        made.mux([packet for painted in graph.paint(None) for packet in stream.encode(painted)])
        made.mux(stream.encode(None))


def _palette(shots: _Shots) -> av.VideoFrame:
    graph = av.filter.Graph()
    first = next(iter(shots))
    source = graph.add_buffer(width=first.width, height=first.height, format=first.format, time_base=_GIF_TICK)
    found = graph.link_nodes(source, graph.add("palettegen", "stats_mode=full"), graph.add("buffersink"))
    found.configure()
    for number, frame in enumerate(shots):
        frame.pts, frame.time_base = number, _GIF_TICK
        graph.push(frame)
    graph.push(None)
    palette = graph.pull()
    assert isinstance(palette, av.VideoFrame)
    return palette


class _Painting:
    """Frames in the colours of the palette."""

    def __init__(self, base: av.VideoFrame, palette: av.VideoFrame) -> None:
        self._graph = av.filter.Graph()
        sources = [
            self._graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=_GIF_TICK)
            for frame in (base, palette)
        ]
        use, self._sink = self._graph.add("paletteuse", _USE), self._graph.add("buffersink")
        for place, source in enumerate(sources):
            source.link_to(use, 0, place)
        use.link_to(self._sink)
        self._graph.configure()
        self._source = sources[0]
        palette.pts = 0
        sources[1].push(palette)
        sources[1].push(None)

    def paint(self, frame: av.VideoFrame | None) -> list[av.VideoFrame]:
        self._source.push(frame)
        found: list[av.VideoFrame] = []
        while True:
            try:
                painted = self._sink.pull()
            except (av.error.BlockingIOError, av.error.EOFError):
                return found
            assert isinstance(painted, av.VideoFrame)
            found.append(painted)


def _webp(shots: _Shots, out: Path, again: int, quality: int) -> None:
    """Durations in whole milliseconds whose sum does not drift."""
    places = [round(at / _TICK) for at in shots.times]
    durations = [end - start for start, end in pairwise(places)]
    frames = (_image(frame) for frame in shots)
    first = next(frames)
    first.save(
        out, "WEBP", save_all=True, append_images=frames, duration=durations, loop=again, quality=quality, method=4
    )


def _image(frame: av.VideoFrame) -> Image.Image:
    mode, raw = ("RGBA", "BGRA") if frame.format.name == "bgra" else ("RGB", "BGR")
    array = frame.to_ndarray()
    return Image.frombytes(mode, (frame.width, frame.height), array.tobytes(), "raw", raw)


def _png(shots: _Shots, out: Path, again: int) -> None:
    last = shots.seconds[-1]
    options = {"plays": str(again), "final_delay": f"{last.numerator}/{last.denominator}"}
    with av.open(str(out), "w", format="apng", container_options=options) as made:
        stream = made.add_stream("apng", rate=25)
        base = next(iter(shots))
        stream.width, stream.height = base.width, base.height
        stream.pix_fmt = "rgba" if base.format.name == "bgra" else "rgb24"
        stream.codec_context.time_base = stream.time_base = _TICK
        for at, frame in zip(shots.times, shots, strict=False):
            frame.pts, frame.time_base = round(at / _TICK), _TICK
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
