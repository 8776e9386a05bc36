"""Films and animations that are whole, or nearly so, and that were refused once or lost frames."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from shared.context import Models
from shared.rejections import MediaCorruptError
from tests.functions.film import Film, pictures
from tests.functions.test_video_animations import KEPT, STEPS, frames
from tests.local.film import RATE, moving
from tests.unit.video.animated import shown
from tests.unit.video.made import times

LOST = 2
"""Pictures at the begin of a film that somebody cut without looking for a key frame."""
STILL = Path(__file__).parents[1] / "data/face/one_face.jpg"
FACE = np.s_[60:160, 60:160, :3]
HASTY = {"gif": [0, 10, 100, 20, 0, 50, 10], "png": [0, 10, 100, 11, 5, 50, 0], "webp": [0, 10, 100, 11, 5, 50, 0]}
"""Milliseconds that pictures say they are shown for; browsers take 10 and less for 100."""


def headless(film: Path, path: Path) -> Path:
    with av.open(str(film)) as held, av.open(str(path), "w") as out:
        copies = [out.add_stream_from_template(stream, opaque=True) for stream in held.streams]
        count = 0
        for packet in held.demux():
            count += packet.stream.type == "video" and packet.size > 0
            if packet.size and (packet.stream.type != "video" or count > LOST):
                packet.stream = copies[packet.stream.index]
                out.mux(packet)
    return path


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cut")
    return headless(moving(folder / "whole.mp4", STILL, 2), folder / "cut.mp4")


def animated(astronaut: Path, path: Path, **told: object) -> Path:
    first, *rest = frames(astronaut)
    first.save(path, save_all=True, append_images=rest, **{"duration": STEPS, **told})
    return path


def test_a_film_without_a_first_key_frame_is_damaged(
    cut: Path, tmp_path: Path, registry: Models, astronaut: Path
) -> None:
    film = Film(tmp_path / "objects", registry)
    with pytest.raises(MediaCorruptError) as refused:
        film.run(film.job(astronaut, cut))
    assert refused.value.context["field"] == "damaged"


def test_a_film_without_a_first_key_frame_is_finished(
    cut: Path, tmp_path: Path, registry: Models, astronaut: Path
) -> None:
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(astronaut, cut, damaged="finish"))
    assert "frames_damaged" in result.warnings
    assert result.frames == result.frames_swapped == len(pictures(path)) == RATE, "the second group of pictures"


def test_a_png_whose_first_picture_is_laid_over_nothing(tmp_path: Path, registry: Models, astronaut: Path) -> None:
    target = animated(astronaut, tmp_path / "target.png", disposal=0, blend=1)
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(astronaut, target))
    assert result.frames == result.frames_swapped == len(STEPS)
    assert shown(path)[0] == STEPS


@pytest.mark.parametrize(("form", "into"), [("webp", "mp4"), ("webp", "webm"), ("gif", "mkv"), ("png", "mp4")])
def test_an_animation_becomes_a_video(form: str, into: str, tmp_path: Path, registry: Models, astronaut: Path) -> None:
    hidden = form == "png"  # a still picture that is not part of the animation
    told = {"default_image": True, "duration": STEPS[1:]} if hidden else {}
    target = animated(astronaut, tmp_path / f"target.{form}", **KEPT[form], **told)
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(astronaut, target, format=into))
    steps = STEPS[1:] if hidden else STEPS
    assert result.frames_swapped == len(steps)
    assert [1000 * at for at in times(path)] == [sum(steps[:number]) for number in range(len(steps))]


@pytest.mark.parametrize("form", ["gif", "png", "webp"])
def test_a_picture_that_lasts_next_to_no_time_is_swapped_and_shown_as_browsers_do(
    form: str, tmp_path: Path, registry: Models, astronaut: Path
) -> None:
    target = animated(astronaut, tmp_path / f"target.{form}", **{**KEPT[form], "duration": HASTY[form]})
    assert shown(target)[0] == HASTY[form]
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(astronaut, target))
    assert result.frames_swapped == result.frames == len(STEPS)
    assert shown(path)[0] == [step if step > 10 else 100 for step in HASTY[form]]
    for old, new in zip(shown(target)[1], shown(path)[1], strict=True):
        assert np.abs(old.astype(int) - new)[FACE].max() > 40
