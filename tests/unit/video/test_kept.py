"""What is promised of every video, on 60 of them: 12 pairs of container and codec in 5 kinds each.

Each is divided, each clip written anew (every second group passed on where it can be) and joined again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import av
import pytest

from tests.unit.video import made
from tests.unit.video.chain import Finished, ssim, through
from tests.unit.video.made import Recipe

PAIRS = [
    *(("mp4", codec) for codec in ("h264", "h265", "av1", "vp9")),
    *(("mov", codec) for codec in ("h264", "h265")),
    *(("mkv", codec) for codec in ("h264", "h265", "av1", "vp9")),
    *(("webm", codec) for codec in ("av1", "vp9")),
]
SOUNDS = {
    "mp4": ("aac", "aac"),
    "mov": ("aac", "pcm_s16le"),
    "mkv": ("libopus", "flac"),
    "webm": ("libopus", "libopus"),
}
FRAMES = 18


@dataclass(frozen=True)
class Kind:
    steps: tuple[int, ...]
    """Milliseconds from frame to frame, repeated; 0: a 30000/1001rd part of a second."""
    rotation: int
    sounds: int
    size: tuple[int, int]
    start: float = 0.0
    aspect: Fraction = Fraction(1)
    deep: bool = False
    odd: bool = False


KINDS = [
    Kind((40,), 0, 0, (96, 64)),
    Kind((40, 80, 20, 40, 60), 90, 1, (64, 96)),
    Kind((0,), 180, 2, (98, 66)),
    Kind((20,), 270, 1, (128, 64), start=1.5, aspect=Fraction(4, 3)),
    Kind((40,), 0, 1, (96, 64), deep=True, odd=True),
]


def recipe(container: str, codec: str, kind: Kind) -> Recipe:
    exact = container in ("mp4", "mov")
    base = Fraction(1, 30000) if exact and kind.steps == (0,) else Fraction(1, 90000 if exact else 1000)
    times = [Fraction(kind.start)]
    for number in range(FRAMES - 1):
        step = kind.steps[number % len(kind.steps)]
        times.append(times[-1] + (Fraction(step, 1000) if step else Fraction(1001, 30000)))
    size = (101, 77) if kind.odd and codec in ("av1", "vp9") else kind.size
    deep = kind.deep and codec != "vp9"
    return Recipe(
        container,
        codec,
        tuple(round(at / base) for at in times),
        base,
        size,
        "yuv420p10le" if deep else "yuv420p",
        kind.rotation,
        keys=6,
        audio=SOUNDS[container][: kind.sounds],
        languages=("eng", "deu"),
        aspect=kind.aspect,
        colours=(1, 9, 18, 9) if deep else (1, 1, 1, 1),
    )


@pytest.mark.parametrize(("pair", "kind"), [*product(PAIRS, range(len(KINDS)))], ids=str)
def test_a_video_comes_back_as_it_was(pair: tuple[str, str], kind: int, tmp_path: Path) -> None:
    wanted = recipe(*pair, KINDS[kind])
    source = made.make(tmp_path / f"source.{wanted.container}", wanted)
    done = through(source, tmp_path, copy=True)
    assert done.choice.codec == wanted.codec
    assert (*done.choice.warnings, *done.warnings) == ()
    _check_times(source, done.path)
    _check_sound(source, done.path, len(wanted.audio))
    _check_tags(source, done.path)
    _check_pictures(source, done)


def _check_times(source: Path, out: Path) -> None:
    before, after = made.times(source), made.times(out)
    assert len(after) == len(before) == FRAMES
    assert after == before
    lasting = [_duration(path) for path in (source, out)]
    assert abs(lasting[0] - lasting[1]) < 0.03


def _duration(path: Path) -> float:
    with av.open(str(path)) as container:
        assert container.duration is not None
        return container.duration / av.time_base


def _check_sound(source: Path, out: Path, tracks: int) -> None:
    for number in range(tracks):
        assert made.packets(out, "audio", number) == made.packets(source, "audio", number)
        before, after = made.times(source, "audio", number), made.times(out, "audio", number)
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) <= Fraction(1, 1000)


def _check_tags(source: Path, out: Path) -> None:
    assert _tags(out) == _tags(source)
    said = _said(out).lower()
    assert not any(word in said for word in ("anna", "home", "maker", "model", "48.1372", "2024"))


def _tags(path: Path) -> list[object]:
    with av.open(str(path)) as container:
        video = container.streams.video[0]
        context, frame = video.codec_context, next(container.decode(video))
        colours = (context.color_range, context.color_primaries, context.color_trc, context.colorspace)
        pictures = (context.codec.canonical_name, frame.width, frame.height, frame.format.name, colours, frame.rotation)
        beside = [(stream.type, stream.language, stream.disposition) for stream in container.streams]
        return [pictures, video.sample_aspect_ratio or 1, *beside]


def _said(path: Path) -> str:
    with av.open(str(path)) as container:
        return str([container.metadata, *(stream.metadata for stream in container.streams)])


def _check_pictures(source: Path, done: Finished) -> None:
    before, after = made.decoded(source), made.decoded(done.path)
    tick = Fraction(*done.plan.facts.time_base)
    passed = {at * tick for at in done.passed_on}
    for number, ((at, old), (then, new)) in enumerate(zip(before, after, strict=True)):
        assert then == at
        if at in passed:
            assert (new == old).all()
        assert ssim(new, old) > 0.98
        for neighbour in (number - 1, number + 1):
            if 0 <= neighbour < len(before):
                assert ssim(new, before[neighbour][1]) < 0.95, "the texture moves, so a shifted frame would show"


@pytest.mark.parametrize(("container", "codec"), PAIRS)
def test_groups_are_passed_on_where_one_stream_can_hold_both(container: str, codec: str, tmp_path: Path) -> None:
    source = made.make(tmp_path / f"source.{container}", replace(recipe(container, codec, KINDS[0])))
    done = through(source, tmp_path, copy=True)
    assert bool(done.passed_on) == (codec != "h265" or container == "mkv")
