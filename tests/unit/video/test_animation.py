"""Animated pictures: durations, loops, transparency and colours, as another reader than ours sees them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from shared.rejections import MediaCorruptError
from shared.video import walking
from shared.video.animation import animate
from shared.video.choosing import choose, finished
from shared.video.cut import cut
from shared.video.encode import ClipWriter
from shared.video.faults import EncodeFailedError
from shared.video.plan import Part, Plan
from shared.video.sniff import sniff
from shared.video.source import Source
from tests.unit.video import made
from tests.unit.video.animated import shown
from tests.unit.video.chain import Finished, facts, through
from tests.unit.video.made import Recipe, ticks

CASES = Path("tests/data/video")
STEPS = (40, 80, 20, 40, 200, 60, 40)
FORMATS = ("gif", "webp", "png")


@pytest.mark.parametrize("form", FORMATS)
def test_a_video_becomes_an_animation_with_its_own_durations(form: str, tmp_path: Path) -> None:
    recipe = Recipe("mkv", ticks=ticks(STEPS), time_base=made.MILLISECOND, keys=4)
    done = through(made.make(tmp_path / "source.mkv", recipe), tmp_path, container=form)
    durations, pictures, loop = shown(done.path)
    assert (durations[:-1], loop, done.warnings) == (list(STEPS), 0, ())
    for number, picture in enumerate(pictures):
        right = np.abs(picture[..., :3].astype(int) - made.picture(number, (96, 64))).mean()
        wrong = np.abs(picture[..., :3].astype(int) - made.picture(number + 1, (96, 64))).mean()
        assert right < 12 < wrong


@pytest.mark.parametrize("form", FORMATS)
def test_transparency_is_kept(form: str, tmp_path: Path) -> None:
    done = through(CASES / "alpha_vp9.webm", tmp_path, container=form)
    _, pictures, _ = shown(done.path)
    assert float((pictures[0][..., 3] == 0).mean()) == pytest.approx(0.587, abs=0.02)


@pytest.mark.parametrize("form", FORMATS)
def test_it_is_played_as_often_as_its_source(form: str, tmp_path: Path) -> None:
    source = tmp_path / f"source.{form}"
    frames = [Image.fromarray(made.picture(number, (64, 48))) for number in range(5)]
    frames[0].save(source, save_all=True, append_images=frames[1:], duration=[40, 60, 100, 40, 50], loop=3)
    played = facts(source).loops
    done = _unchanged(source, tmp_path, frames)
    assert facts(done).loops == played
    assert shown(done)[0] == [40, 60, 100, 40, 50]


def _unchanged(source: Path, folder: Path, frames: list[Image.Image]) -> Path:
    """An animation of lossless clips of `frames` that takes its facts from `source`."""
    recipe = Recipe("mkv", ticks=ticks((40, 60, 100, 40)), time_base=made.MILLISECOND, size=(64, 48))
    through_video: Finished = through(made.make(folder / "film.mkv", recipe), folder, container=source.suffix[1:])
    known = facts(source)
    plan = through_video.plan
    last = replace(plan.parts[-1], end=290)
    plan = replace(
        plan, facts=replace(plan.facts, container=known.container, loops=known.loops), parts=(*plan.parts[:-1], last)
    )
    out = folder / f"again.{source.suffix[1:]}"
    clips = [folder / f"clip.{number}.mkv" for number in range(len(plan.parts))]
    animate(clips, plan, out, through_video.choice, quality=92)
    return out


def test_sound_has_no_place_in_an_animation_and_is_named(tmp_path: Path) -> None:
    done = through(CASES / "moov_at_end.mp4", tmp_path, container="webp")
    assert done.choice.warnings == ("audio_dropped",)


@pytest.mark.parametrize("form", FORMATS)
def test_frames_that_no_browser_would_show_for_their_time_are_dropped_and_that_is_said(
    form: str, tmp_path: Path
) -> None:
    recipe = Recipe("mkv", ticks=tuple(range(0, 100, 10)), time_base=made.MILLISECOND)
    done = through(made.make(tmp_path / "source.mkv", recipe), tmp_path, container=form, seconds=10)
    assert done.warnings == ("frames_dropped",)
    assert shown(done.path)[0] == [20, 20, 20, 20, 50]


@pytest.mark.parametrize(("form", "step"), [("gif", 20), ("webp", 11), ("png", 11)])
def test_frames_are_as_short_as_browsers_show_them(form: str, step: int, tmp_path: Path) -> None:
    recipe = Recipe("mkv", ticks=tuple(range(0, 10 * step, step)), time_base=made.MILLISECOND)
    done = through(made.make(tmp_path / "source.mkv", recipe), tmp_path, container=form, seconds=10)
    assert done.warnings == ()
    assert shown(done.path)[0][:-1] == [step] * 9


@pytest.mark.parametrize("form", FORMATS)
def test_of_no_picture_at_all_nothing_can_be_made(form: str, tmp_path: Path) -> None:
    source = made.make(tmp_path / "source.mkv", Recipe("mkv", ticks=ticks(STEPS), time_base=made.MILLISECOND))
    found = replace(facts(source), damage=("frames_damaged",))
    choice, (piece,) = choose(found, form), cut(source, found, tmp_path, 60)
    with ClipWriter(clip := tmp_path / "clip.mkv", piece.path, found, choice, quality=92):
        pass
    plan = Plan(found, (Part(made.NO_REF, piece.start, piece.end, piece.frames, piece.cut),), window=2)
    with pytest.raises(EncodeFailedError, match="No clip holds a picture"):
        animate([clip], plan, tmp_path / f"out.{form}", choice, quality=92)


@pytest.mark.parametrize("comments", [1, 3])
def test_blocks_without_end_are_counted_over_the_whole_file(
    comments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "_MOST", 1000)
    with Image.new("P", (16, 16)) as image:
        image.save(source := tmp_path / "source.gif")
    data = source.read_bytes()
    place = data.index(b"\x2c", 13 + 3 * 2)
    source.write_bytes(data[:place] + (b"\x21\xfe" + b"\1x" * 400 + b"\0") * comments + data[place:])
    with source.open("rb", buffering=0) as file:
        if comments == 1:
            assert sniff(Source(file.fileno())) is None, "a still picture"
            return
        with pytest.raises(MediaCorruptError):
            sniff(Source(file.fileno()))


def test_an_animated_picture_becomes_a_video(tmp_path: Path) -> None:
    gif = through(CASES / "alpha_vp9.webm", tmp_path, container="gif").path
    folder = tmp_path / "video"
    folder.mkdir()
    done = through(gif, folder, container="mp4")
    assert set(done.choice.warnings) == {"alpha_dropped", "chroma_reduced"}
    (_, before, _), after = shown(gif), made.decoded(done.path, "rgb24")
    assert len(after) == len(before)
    solid = before[3][..., 3] == 255
    assert np.abs(after[3][1][solid].astype(int) - before[3][solid][:, :3]).mean() < 12
    assert after[3][1][before[3][..., 3] == 0].max(initial=0) < 90


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_an_animation_is_upright_and_its_pixels_are_square(form: str, rotation: int, tmp_path: Path) -> None:
    """It cannot say that it is to be turned or stretched."""
    recipe = Recipe(ticks=ticks((512, 512)), rotation=rotation, aspect=Fraction(4, 3))
    source = made.make(tmp_path / "source.mp4", recipe)
    found = facts(source)
    done = through(source, tmp_path, container=form)
    _, pictures, _ = shown(done.path)
    assert finished(found, done.choice) == pictures[0].shape[1::-1] == ((64, 128) if rotation % 180 else (128, 64))
    expected = np.rot90(cv2.resize(made.picture(0, (96, 64)), (128, 64)), found.rotation // 90)
    assert np.abs(pictures[0][..., :3].astype(int) - expected).mean() < 14
