"""Pixels that are not square, in frames that lie on their side: the swapped face is where the face is."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from shared.context import Models
from shared.events.payloads import Result
from tests.functions.film import Film, pictures

SIDE, FRAMES = 352, 8
"""Of the scene as it is shown."""
FACE = np.s_[60:180, 130:250]
"""What of it a swap may change in any frame."""


def scene(number: int, still: np.ndarray) -> np.ndarray:
    """A window that wanders over the mirrored still, upright, its pixels square."""
    x, y = 90 + 2 * number, number
    return np.ascontiguousarray(still[y : y + SIDE, ::-1][:, x : x + SIDE])


def film_of(path: Path, astronaut: Path, aspect: Fraction, rotation: int) -> Path:
    """The scene as a camera codes it that lies on its side and has few columns."""
    still = cv2.imread(str(astronaut))
    assert still is not None
    width = round(SIDE / aspect / 2) * 2
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = width, SIDE, "yuv444p"
        stream.codec_context.options = {"crf": "6", "preset": "veryfast"}
        stream.codec_context.sample_aspect_ratio = aspect
        if rotation:
            stream.set_display_rotation(rotation)
        for number in range(FRAMES):
            lying = np.rot90(scene(number, still), -(rotation // 90))
            coded = cv2.resize(lying, (width, SIDE), interpolation=cv2.INTER_AREA)
            frame = av.VideoFrame.from_ndarray(coded, format="bgr24").reformat(format="yuv444p")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def changes(before: Path, after: Path, rotation: int) -> list[np.ndarray]:
    """What was changed of each frame, as it is shown, float32 [SIDE, SIDE, 3]."""
    pairs = zip(pictures(before), pictures(after), strict=True)
    found = [np.rot90(new.astype(np.float32) - old, rotation // 90) for old, new in pairs]
    return [cv2.resize(np.ascontiguousarray(one), (SIDE, SIDE), interpolation=cv2.INTER_CUBIC) for one in found]


def swapped(
    folder: Path, registry: Models, astronaut: Path, aspect: Fraction, rotation: int
) -> tuple[Result, Path, list[np.ndarray]]:
    target = film_of(folder / "target.mp4", astronaut, aspect, rotation)
    film = Film(folder / "objects", registry)
    result, path = film.run(film.job(astronaut, target, quality=100))
    return result, path, changes(target, path, rotation)


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory, registry: Models, sample: object) -> list[np.ndarray]:
    folder = tmp_path_factory.mktemp("square")
    return swapped(folder, registry, sample("astronaut"), Fraction(1), 0)[2]  # type: ignore[operator]


@pytest.mark.parametrize("aspect", [Fraction(4, 3), Fraction(16, 11)])
@pytest.mark.parametrize("rotation", [0, 90, 270])
def test_a_face_in_oblong_pixels_is_swapped_where_it_is(
    aspect: Fraction, rotation: int, tmp_path: Path, registry: Models, astronaut: Path, square: list[np.ndarray]
) -> None:
    result, path, found = swapped(tmp_path, registry, astronaut, aspect, rotation)
    assert result.frames_swapped == result.frames == FRAMES
    with av.open(str(path)) as held:
        stream = held.streams.video[0]
        assert stream.sample_aspect_ratio == aspect
        assert next(held.decode(stream)).rotation % 360 == rotation
    window = cv2.createHanningWindow((SIDE, SIDE), cv2.CV_64F)
    for one, wanted in zip(found, square, strict=True):
        grey, right = one.mean(2).astype(np.float64), wanted.mean(2).astype(np.float64)
        shift, _ = cv2.phaseCorrelate(right, grey, window)
        assert np.hypot(*shift) < 0.4, "pixels"
        assert np.corrcoef(grey[FACE].ravel(), right[FACE].ravel())[0, 1] > 0.85
        outside = cv2.blur(np.abs(one).max(2), (5, 5))
        outside[FACE] = 0
        assert outside.max() < 20, "the encoder's loss alone"
