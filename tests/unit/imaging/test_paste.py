"""Pastes against the frame they must leave alone, against pixels by hand and against a supersampled reference."""

from __future__ import annotations

import math
import warnings

import cv2
import numpy as np
import pytest

from shared.imaging.geometry import invert
from shared.imaging.masks import box_mask
from shared.imaging.paste import paste
from shared.imaging.paste_exact import paste_exact
from shared.vision.templates import TEMPLATES

CHANCE = np.random.default_rng(5)


def noise(height: int, width: int) -> np.ndarray:
    return CHANCE.integers(0, 256, (height, width, 3), np.uint8)


def soft(height: int, width: int) -> np.ndarray:
    return cv2.resize(noise(height // 16, width // 16), (width, height), interpolation=cv2.INTER_CUBIC)


def placed(side: int, x: float, y: float, size: float, degrees: float = 0.0) -> np.ndarray:
    """Frame to crop, for a crop that lies `size` pixels wide with its middle at x, y."""
    k, turn = side / size, math.radians(degrees)
    linear = k * np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    half = (side - 1) / 2
    return np.column_stack([linear, half - linear @ (x, y)])


def cut(frame: np.ndarray, matrix: np.ndarray, side: int) -> np.ndarray:
    return cv2.warpAffine(frame, matrix, (side, side), borderMode=cv2.BORDER_REPLICATE)


def changed(before: np.ndarray, after: np.ndarray) -> int:
    return int(np.abs(before.astype(int) - after).max())


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_an_identity_paste_changes_nothing(dtype: type) -> None:
    """Whole-pixel crops hold the frame's own levels; a truncating paste would darken every feathered pixel."""
    frame = noise(400, 500)
    before = frame.copy()
    for x, y in ((10, 20), (0, 0), (244, 144), (-40, 30), (400, 300)):
        matrix = np.array([[1, 0, -x], [0, 1, -y]], np.float64)
        paste(frame, cut(frame, matrix, 256).astype(dtype), box_mask(256), matrix)
    assert changed(before, frame) == 0


@pytest.mark.parametrize("size", [60, 128, 131.7, 400])
@pytest.mark.parametrize("level", [0, 1, 127, 200, 255])
def test_one_colour_stays_one_colour(level: int, size: float) -> None:
    frame = np.full((300, 400, 3), level, np.uint8)
    paste(frame, np.full((128, 128, 3), level, np.uint8), box_mask(128), placed(128, 190.3, 150.8, size, 17))
    assert np.ptp(frame) == 0
    assert frame[0, 0, 0] == level


def test_repeated_pastes_do_not_darken() -> None:
    """engine.md, B 11: truncation costs 0.48 levels a paste, 1.37 in three."""
    frame = soft(480, 640)
    before = frame.copy()
    matrix = placed(256, 320.4, 240.2, 300, 12)
    mask = box_mask(256)
    inside = cv2.warpAffine(mask, matrix, (640, 480), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP) > 0.5
    for _ in range(3):
        paste(frame, cut(frame, matrix, 256), mask, matrix)
    assert abs(float((frame.astype(float) - before)[inside].mean())) < 0.03


def test_levels_by_hand() -> None:
    """A quarter of 10 and three quarters of 21 is 18.25; a quarter of 255 is 63.75."""
    matrix = np.array([[1, 0, -4], [0, 1, -4]], np.float64)
    for old, new, share, want in ((10, 21, 0.75, 18), (0, 255, 0.25, 64), (255, 0, 0.25, 191), (7, 99, 0, 7)):
        frame = np.full((32, 32, 3), old, np.uint8)
        paste(frame, np.full((16, 16, 3), new, np.uint8), np.full((16, 16), share, np.float32), matrix)
        assert (frame[4:20, 4:20] == want).all()
        frame[4:20, 4:20] = old
        assert (frame == old).all()


@pytest.mark.parametrize(("size", "degrees"), [(100, 0), (180, 33), (700, -20), (40, 90)])
def test_only_the_pixels_under_the_crop_change(size: float, degrees: float) -> None:
    frame = noise(600, 800)
    before = frame.copy()
    matrix = placed(256, 420.2, 290.7, size, degrees)
    paste(frame, np.full((256, 256, 3), 255, np.uint8), np.ones((256, 256), np.float32), matrix)
    rows, columns = np.indices(frame.shape[:2])
    at = np.stack([columns, rows], axis=-1) @ matrix[:, :2].T + matrix[:, 2]
    step = max(1.0, 256 / size)
    outside = ((at < -step) | (at > 255 + step)).any(axis=-1)
    assert (frame[outside] == before[outside]).all()
    inside = ((at >= step) & (at <= 255 - step)).all(axis=-1)
    assert (frame[inside] == 255).all()


@pytest.mark.parametrize("side", [128, 512])
@pytest.mark.parametrize("size", [90, 333, 900])
@pytest.mark.parametrize(("x0", "y0"), [(250, 200), (310, 170), (700, 700)])
def test_a_face_cut_by_the_frames_edge_gets_the_full_frames_pixels(x0: int, y0: int, size: int, side: int) -> None:
    whole = noise(900, 1100)
    part = whole[y0 : y0 + 130, x0 : x0 + 170].copy()
    crop, mask = noise(side, side), box_mask(side)
    matrix = placed(side, 330.6, 210.3, size, 14)
    shifted = np.column_stack([matrix[:, :2], matrix[:, 2] + matrix[:, :2] @ (x0, y0)])
    paste(whole, crop, mask, matrix)
    paste(part, crop, mask, shifted)
    assert changed(whole[y0 : y0 + 130, x0 : x0 + 170], part) == 0


def test_a_crop_beyond_the_frame_changes_nothing() -> None:
    frame = noise(100, 120)
    before = frame.copy()
    for x, y in ((-300, 50), (600, 50), (60, -300), (60, 800)):
        paste(frame, noise(128, 128), box_mask(128), placed(128, x, y, 150))
        paste_exact(frame, noise(128, 128), placed(128, x, y, 150))
    assert changed(before, frame) == 0


def test_it_works_on_views_and_in_place() -> None:
    canvas = noise(300, 400)
    before = canvas.copy()
    paste(canvas[50:250, 60:360], np.zeros((128, 128, 3), np.uint8), box_mask(128), placed(128, 150, 100, 90))
    assert canvas[150, 210].max() == 0
    canvas[50:250, 60:360] = before[50:250, 60:360]
    assert changed(before, canvas) == 0


def supersampled(picture: np.ndarray, back: np.ndarray, size: tuple[int, int], density: int = 16) -> np.ndarray:
    """The mean of density x density bilinear samples in each output pixel."""
    width, height = size
    dense = np.column_stack(
        [back[:, :2] / density, back[:, 2] - back[:, :2].sum(axis=1) * (density - 1) / (2 * density)]
    )
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    fine = cv2.warpAffine(
        picture.astype(np.float32),
        dense,
        (width * density, height * density),
        flags=flags,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return cv2.resize(fine, size, interpolation=cv2.INTER_AREA)


@pytest.mark.parametrize("size", [300, 200, 120])
def test_a_large_crop_does_not_alias_in_a_small_place(size: int) -> None:
    """Bilinear sampling of a 1024 px crop in 120 px would show one pixel of 70."""
    squares = (np.indices((1024, 1024)).sum(axis=0) % 2 * 255).astype(np.uint8)
    crop = np.dstack([squares] * 3)
    frame = np.zeros((80, 90, 3), np.uint8)
    matrix = placed(1024, 44.4, 39.9, size, 11)
    paste(frame, crop, np.ones((1024, 1024), np.float32), matrix)
    naive = cv2.warpAffine(crop, matrix, (90, 80), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    want = supersampled(crop, matrix, (90, 80))
    middle = np.s_[10:70, 15:75]
    assert np.abs(frame[middle] - want[middle]).max() < 6
    assert np.abs(naive[middle] - want[middle]).max() > 60


def test_exact_shows_the_crop_and_truncates_as_the_original_does() -> None:
    """The sum of a Gaussian's weights is a hair below 1, so even in the middle some levels lose one."""
    frame, crop = noise(300, 300), noise(128, 128)
    paste_exact(frame, crop, np.array([[1, 0, -80], [0, 1, -90]], np.float64))
    lost = crop[50:78, 50:78].astype(int) - frame[140:168, 130:158]
    assert set(np.unique(lost)) <= {0, 1}


def test_exact_darkens_as_the_original_does() -> None:
    frame = noise(300, 300)
    before = frame.copy()
    matrix = np.array([[1, 0, -80], [0, 1, -90]], np.float64)
    paste_exact(frame, cut(frame, matrix, 128), matrix)
    difference = (frame.astype(int) - before)[90:218, 80:208]
    assert difference.max() == 0
    assert difference.min() < 0


class Fixed:
    """Stands for insightface's session: every run gives this crop."""

    def __init__(self, crop: np.ndarray) -> None:
        self.planes = crop[None, :, :, ::-1].transpose(0, 3, 1, 2).astype(np.float32) / 255

    def run(self, outputs: object, feeds: object) -> list[np.ndarray]:
        return [self.planes]


class Face(dict[str, np.ndarray]):
    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(
    ("size", "x", "y"), [(60, 200, 150), (133, 610, 20), (250, 300, 260), (700, 380, 300), (760, 0, 470)]
)
def test_exact_is_insightfaces_own_paste(size: float, x: float, y: float) -> None:
    from insightface.model_zoo.inswapper import INSwapper

    frame = soft(480, 640)
    peer = INSwapper.__new__(INSwapper)  # its constructor reads a model file
    peer.emap, peer.input_size, peer.input_mean, peer.input_std = np.eye(512, dtype=np.float32), (128, 128), 0.0, 255.0
    peer.session, peer.input_names, peer.output_names = Fixed(noise(128, 128)), ["target", "source"], ["output"]
    back = invert(placed(128, x, y, size, 12))
    face = Face(kps=(TEMPLATES["arcface_128"] * 128 @ back[:, :2].T + back[:, 2]).astype(np.float32))
    face["normed_embedding"] = np.full(512, 512**-0.5, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # insightface's call of scikit-image
        crop, matrix = peer.get(frame, face, face, paste_back=False)
        theirs = peer.get(frame, face, face)
    paste_exact(frame, np.ascontiguousarray(crop), matrix)
    assert changed(theirs, frame) <= 1


def test_a_map_that_leads_nowhere_is_told() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        paste(noise(20, 20), noise(16, 16), box_mask(16), np.zeros((2, 3)))
