"""Division at key frames: every frame that is shown is in one part, and each part can be decoded by itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from shared.isolated.frames import decoded
from shared.rejections import MediaCorruptError
from shared.video.cut import Piece, cut, hidden
from shared.video.facts import Facts
from shared.video.media import reading
from tests.unit.video import made
from tests.unit.video.chain import facts, frames, through
from tests.unit.video.made import Recipe

CASES = Path("tests/data/video")


def pieces(path: Path, folder: Path, seconds: float = 0.6, fewest: int = 4) -> tuple[Facts, list[Piece]]:
    found = facts(path)
    return found, list(cut(path, found, folder, seconds, fewest))


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(options=(("x264-params", "open-gop=1"),)),
        Recipe(codec="h265", options=(("x265-params", "log-level=none:open-gop=1:bframes=3"),)),
        Recipe("mkv", "av1", tuple(range(0, 960, 40)), Fraction(1, 1000)),
        Recipe("webm", "vp9", tuple(range(0, 960, 40)), Fraction(1, 1000)),
    ],
    ids=["closed", "open", "open-hevc", "av1", "vp9"],
)
def test_every_frame_is_in_one_part_and_decodes_there_to_the_same(recipe: Recipe, tmp_path: Path) -> None:
    source = made.make(tmp_path / f"source.{recipe.container}", recipe)
    whole = {frame.pts: frame.planes[0].copy() for frame in frames(source)}
    found, parts = pieces(source, tmp_path)
    assert len(parts) > 1
    assert [part.start for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert (parts[0].start, parts[-1].end) == (found.start, found.end)
    seen = []
    for part in parts:
        own = [frame for frame in frames(part.path) if part.start <= frame.pts < part.end]
        assert len(own) == part.frames
        assert all(np.array_equal(frame.planes[0], whole[frame.pts]) for frame in own)
        seen += [frame.pts for frame in own]
    assert seen == sorted(whole)


def test_no_part_begins_where_a_picture_is_not_whole_yet(tmp_path: Path) -> None:
    """x264's intra refresh marks key frames from which a picture is whole only some frames later."""
    slow = (("x264-params", "intra-refresh=1:keyint=8"), ("preset", "medium"))
    source = made.make(tmp_path / "source.mp4", Recipe(keys=1000, options=slow))
    with reading(source) as container:
        marked = [packet.is_keyframe for packet in container.demux(video=0) if packet.size]
    whole = [frame.planes[0].copy() for frame in frames(source)]
    found, parts = pieces(source, tmp_path, 0.3)
    assert sum(marked) > 1
    assert [part.frames for part in parts] == [24]
    with decoded(parts[0].path, found, start=parts[0].start + 12 * 512) as late:
        assert np.array_equal(next(late).planes[0], whole[12])


def test_what_is_shorter_than_a_part_is_one(tmp_path: Path) -> None:
    _, parts = pieces(made.make(tmp_path / "source.mp4", Recipe()), tmp_path, 60)
    assert [part.frames for part in parts] == [24]


def test_a_part_begins_with_the_group_before_it(tmp_path: Path) -> None:
    _, parts = pieces(made.make(tmp_path / "source.mp4", Recipe()), tmp_path, 0.3)
    leads = [sum(frame.pts < part.start for frame in frames(part.path)) for part in parts]
    assert leads == [0, 8, 8]
    assert [part.cut for part in parts] == [True, False, False]


def test_a_video_without_further_key_frames_is_one_part(tmp_path: Path) -> None:
    recipe = Recipe(keys=1000, options=(("x264-params", "scenecut=0:keyint=1000"),))
    _, parts = pieces(made.make(tmp_path / "source.mp4", recipe), tmp_path, 0.1)
    assert [part.frames for part in parts] == [24]


def test_no_part_has_fewer_frames_than_are_worth_it(tmp_path: Path) -> None:
    _, parts = pieces(made.make(tmp_path / "source.mp4", Recipe()), tmp_path, 0.1, fewest=10)
    assert [part.frames for part in parts] == [24]


def test_a_key_frame_out_of_its_turn_is_preferred_as_a_border(tmp_path: Path) -> None:
    recipe = Recipe(ticks=tuple(range(0, 40 * 512, 512)), keys=1000, scenes=(10, 17, 27, 37))
    _, parts = pieces(made.make(tmp_path / "source.mp4", recipe), tmp_path, 0.8)
    assert parts[1].start == 17 * 512


def test_pictures_before_the_begin_stay_hidden_and_times_stay_right(tmp_path: Path) -> None:
    source = made.make(tmp_path / "source.mp4", Recipe(ticks=tuple(range(-4 * 512, 20 * 512, 512))))
    found, parts = pieces(source, tmp_path)
    assert (found.start, found.frames) == (0, 20)
    assert parts[0].start == 4 * 512, "Matroska has no times before zero, so all are moved"
    assert sum(part.frames for part in parts) == 20
    done = through(source, tmp_path)
    assert made.times(done.path) == [Fraction(number, 25) for number in range(20)]


def test_an_animated_picture_is_one_part_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    path.write_bytes(b"GIF89a")
    known = replace(facts(made.make(tmp_path / "source.mp4", Recipe())), container="gif")
    assert [piece.path for piece in cut(path, known, tmp_path, 1)] == [path]


def test_a_video_that_breaks_off_is_divided_as_far_as_it_goes_when_that_is_known(tmp_path: Path) -> None:
    whole = made.make(tmp_path / "whole.mp4", Recipe())
    with reading(whole) as container:
        places = [packet.pos for packet in container.demux(video=0) if packet.size]
    front = tmp_path / "front.mp4"
    shutil.copy(through(whole, tmp_path).path, front)  # its index comes first
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(front.read_bytes()[: int(front.stat().st_size * 0.6)])
    found, parts = pieces(broken, tmp_path, 0.3)
    assert found.damage
    assert 4 <= sum(part.frames for part in parts) < len(places)


def test_a_file_without_pictures_that_are_shown_is_corrupt(tmp_path: Path) -> None:
    source = made.make(tmp_path / "source.mp4", Recipe())
    with pytest.raises(MediaCorruptError):
        list(cut(source, replace(facts(source), start=10**6, end=10**6 + 1), tmp_path, 1))


@pytest.mark.parametrize(("first", "is_hidden"), [(0x00, True), (0x10, False)])
def test_pictures_of_vp8_may_only_help_others(first: int, is_hidden: bool) -> None:
    packet = bytearray([first, 0, 0])
    assert hidden("vp8", packet) == is_hidden
    assert not hidden("h264", packet)


def timed(path: Path, source: Path, at: Callable[[int], int]) -> Path:
    """The packets of `source` in Matroska, number n shown at the millisecond `at(n)`."""
    with av.open(str(source)) as held, av.open(str(path), "w", format="matroska") as out:
        stream = held.streams.video[0]
        made_stream = out.add_stream_from_template(stream, opaque=True)
        for number, packet in enumerate([packet for packet in held.demux(stream) if packet.size]):
            packet.stream, packet.time_base = made_stream, made.MILLISECOND
            packet.pts = packet.dts = at(number)
            out.mux(packet)
    return path


def test_pictures_of_one_time_are_all_kept_one_tick_apart(tmp_path: Path) -> None:
    plain = made.make(tmp_path / "plain.mp4", Recipe(options=(("bf", "0"),)))
    source = timed(tmp_path / "source.mkv", plain, lambda number: number // 3 * 120)
    found, parts = pieces(source, tmp_path)
    assert found.frames == sum(part.frames for part in parts) == 24
    times = []
    for part in parts:
        with decoded(part.path, found) as shown:
            times += [frame.pts for frame in shown if part.start <= frame.pts < part.end]
    assert times == [at + more for at in range(0, 960, 120) for more in range(3)]


def test_times_that_are_not_in_the_order_of_the_pictures_are_damage(tmp_path: Path) -> None:
    source = timed(tmp_path / "source.mkv", made.make(tmp_path / "plain.mp4", Recipe()), lambda number: number * 40)
    with decoded(source, facts(source)) as shuffled:
        times = [frame.pts for frame in shuffled]
    assert len(times) == 24
    assert all(a < b for a, b in pairwise(times))
    assert shuffled.damage == ("frames_damaged",)
