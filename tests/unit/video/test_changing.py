"""Pictures of another size or format in mid-stream: made like the first, said so, and never passed on as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shared.isolated.frames import decoded
from shared.video.cut import cut
from shared.video.groups import groups, stands_alone
from tests.unit.video import changing
from tests.unit.video.chain import facts, ssim
from tests.unit.video.made import picture

LARGE, SMALL = (96, 64), (64, 48)
FILES = {"h264": "mkv", "h265": "mkv", "vp9": "webm", "av1": "webm"}


def run(size: tuple[int, int]) -> list[np.ndarray]:
    return [picture(number, size) for number in range(12)]


def film(folder: Path, codec: str, *sizes: tuple[int, int]) -> Path:
    return changing.made(folder / f"source.{FILES[codec]}", codec, [run(size) for size in sizes])


@pytest.mark.parametrize("codec", FILES)
def test_a_change_of_size_is_scaled_and_said(codec: str, tmp_path: Path) -> None:
    source = film(tmp_path, codec, LARGE, SMALL, LARGE)
    found = facts(source)
    assert (found.width, found.height, found.frames, found.damage) == (*LARGE, 36, ())
    with decoded(source, found, held=40) as frames:
        shown = list(frames)
        assert {frame.planes[0].shape for frame in shown} == {(64, 96)}
        assert (frames.changes, frames.damage) == (("size_changes",), ())
        assert ssim(shown[0].planes[0], shown[24].planes[0]) > 0.95, "what has the first one's size is left as it is"


@pytest.mark.parametrize("codec", FILES)
def test_a_part_that_is_wholly_of_another_size_says_so(codec: str, tmp_path: Path) -> None:
    source = film(tmp_path, codec, LARGE, SMALL, SMALL)
    found = facts(source)
    said = []
    for piece in cut(source, found, tmp_path, 0.4, fewest=4):
        with decoded(piece.path, found, start=piece.start) as frames:
            count = sum(piece.start <= frame.pts < piece.end for frame in frames)
            assert count == piece.frames
            said.append((piece.end > 12 * changing.STEP, frames.changes))
    assert len(said) > 2
    assert all(changes == (("size_changes",) if late else ()) for late, changes in said)


@pytest.mark.parametrize("codec", FILES)
def test_only_groups_of_the_size_that_the_clip_says_are_passed_on(codec: str, tmp_path: Path) -> None:
    source = film(tmp_path, codec, LARGE, SMALL)
    (piece,) = cut(source, facts(source), tmp_path, 60)
    assert [stands_alone(group, codec) for group in groups(piece.path)] == [True, True, False, False]


def test_another_pixel_format_is_converted_and_said(tmp_path: Path) -> None:
    source = changing.made(tmp_path / "source.mkv", "h264", [run(LARGE), run(LARGE)], ("yuv420p", "yuv444p"))
    found = facts(source)
    with decoded(source, found) as frames:
        assert sum(1 for _ in frames) == 24
    assert (frames.changes, frames.damage) == (("format_changes",), ())


def test_what_does_not_change_says_nothing(tmp_path: Path) -> None:
    source = film(tmp_path, "h264", LARGE, LARGE)
    with decoded(source, facts(source)) as frames:
        assert sum(1 for _ in frames) == 24
    assert frames.changes == frames.damage == ()
