"""A video whose pictures change their size, through the stages: the result says so, and is of one size."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.context import Models
from tests.functions.film import Film, pictures
from tests.unit.video import changing

CASES = Path(__file__).parents[1] / "data/video"


@pytest.mark.parametrize(("name", "codec"), [("mkv", "h264"), ("webm", "vp9")])
def test_a_size_that_changes_is_told_with_the_result(
    name: str, codec: str, tmp_path: Path, registry: Models, astronaut: Path
) -> None:
    first = pictures(CASES / "no_audio.mp4")[:24]
    small = [cv2.resize(picture, (128, 128), interpolation=cv2.INTER_AREA) for picture in first]
    empty = [np.full_like(picture, 90) for picture in small]
    target = changing.made(tmp_path / f"changing.{name}", codec, [first, small, empty], keys=12)
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(astronaut, target))
    shown = pictures(path)
    assert "size_changes" in result.warnings
    assert (result.width, result.height, result.frames) == (192, 192, 72)
    assert {picture.shape for picture in shown} == {(192, 192, 3)}
    assert result.frames_swapped == 48
    assert "size_changes" not in film.clips[0].warnings, "the first part has one size"


def test_a_size_that_stays_is_not_told(tmp_path: Path, registry: Models, astronaut: Path) -> None:
    film = Film(tmp_path / "objects", registry)
    result, _ = film.run(film.job(astronaut, CASES / "no_audio.mp4"))
    assert "size_changes" not in result.warnings
