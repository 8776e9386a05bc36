"""Faces cut out of a frame's planes and laid over them: as in the picture that the frame shows, plane by plane."""

from __future__ import annotations

import itertools
from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from shared.imaging.canvas import Still
from shared.imaging.geometry import Doubles, invert
from shared.imaging.masks import box_mask
from shared.video import planes, tone
from shared.video.canvas import FrameCanvas
from shared.video.facts import Colour, Facts
from shared.video.formats import layout
from shared.video.frame import Frame
from shared.video.square import Square
from tests.unit.video.frames import about, noise
from tests.unit.video.test_planes import FORMATS, ROTATIONS

SIDE = 64
ASPECTS = ((1, 1), (4, 3), (16, 11), (1, 2))
CUT, LAID = (0.7, 1.9, 5.0, 1.0), (0.4, 1.3, 0.8, 1.1)
"""Pixels of the canvas in one of the crop, of each aspect."""
COLOURS = (Colour(), Colour(True, 1, 1, 1), Colour(False, 9, tone.PQ, 9))
"""8 bits of high dynamic range are coarse: the last may be further off."""


def smooth(facts: Facts) -> FrameCanvas:
    """A frame whose colours change slowly, so that how they are sampled makes no great difference."""
    form, transfer = layout(facts.pixel_format), facts.colour.transfer
    rough = np.random.default_rng(4).normal(0, 255, (facts.height, facts.width, 4)).astype(np.float32)
    even = cv2.GaussianBlur(rough, (0, 0), 9)
    picture = np.clip(even[..., :3] * 2 + even[..., 3:] * 6 + 120, 40, 200).astype(np.uint8)
    seen = tone.signal(picture, transfer) * np.float32(255) if tone.is_hdr(transfer) else picture
    found = planes.levels(seen, facts)
    kind = np.uint8 if form.bytes == 1 else np.uint16
    full = np.full(picture.shape[:2], (1 << form.depth) - 1, np.float32)
    shapes = form.shapes(facts.width, facts.height)
    samples = zip([*found, full] if form.alpha else found, shapes, strict=True)
    parts = [np.rint(cv2.resize(s, shape[::-1], interpolation=cv2.INTER_AREA)).astype(kind) for s, shape in samples]
    return FrameCanvas(Frame(tuple(parts), facts.pixel_format, 0, 1, True), Square(facts))


def turned(scale: float, x: float, y: float, angle: float = 0.3) -> Doubles:
    """[2, 3]: canvas to crop, so that the point x, y lies in the crop's middle; `scale` pixels of the canvas in one."""
    c, s = np.cos(angle) / scale, np.sin(angle) / scale
    half = (SIDE - 1) / 2
    return np.array([[c, s, half - c * x - s * y], [-s, c, half + s * x - c * y]])


def shown(canvas: FrameCanvas) -> NDArray[np.uint8]:
    return canvas.part((0, 0, *canvas.size))


@pytest.mark.parametrize(("pixel_format", "rotation"), [*itertools.product(FORMATS, ROTATIONS)])
@pytest.mark.parametrize("colour", COLOURS)
def test_a_face_is_cut_out_as_from_the_picture(pixel_format: str, rotation: int, colour: Colour) -> None:
    facts = about(185, 137, pixel_format, rotation, colour)
    coarse = layout(pixel_format).shift[0] > 1  # pictures stretch the last colour of a row that is not whole
    limit = 6 if colour is COLOURS[2] else 3 if coarse else 2
    for aspect, scale in zip(ASPECTS, CUT, strict=True):
        canvas = smooth(replace(facts, sample_aspect=aspect))
        picture = Still(shown(canvas))
        width, height = canvas.size
        for x, y in ((width * 0.4, height * 0.6), (3, 4)):
            back = invert(turned(scale, x, y))
            off = canvas.cut(back, (SIDE, SIDE)).astype(int) - picture.cut(back, (SIDE, SIDE))
            assert np.abs(off).mean() < limit, (aspect, scale)
            grey = canvas.grey(back, (SIDE, SIDE)).astype(float)
            assert grey.shape == (SIDE, SIDE)
            if layout(pixel_format).kind != "gbr" and grey.std() > 5:
                theirs = picture.grey(back, (SIDE, SIDE)).astype(float)
                assert np.corrcoef(grey.ravel(), theirs.ravel())[0, 1] > 0.8


@pytest.mark.parametrize(("pixel_format", "rotation"), [*itertools.product(FORMATS, ROTATIONS)])
@pytest.mark.parametrize("colour", COLOURS)
def test_vid_05_a_face_is_laid_as_over_the_picture_and_the_rest_stays_bit_for_bit(
    pixel_format: str, rotation: int, colour: Colour
) -> None:
    facts = about(185, 137, pixel_format, rotation, colour)
    level = (150, 150, 150) if pixel_format.startswith("gray") else (60, 150, 190)
    crop = np.full((SIDE, SIDE, 3), level, np.uint8)
    for aspect, scale in zip(ASPECTS, LAID, strict=True):
        canvas = smooth(replace(facts, sample_aspect=aspect))
        width, height = canvas.size
        before, picture = [plane.copy() for plane in canvas.frame.planes], Still(shown(canvas).copy())
        matrix = turned(scale, width * 0.45, height * 0.5)
        canvas.lay(crop, box_mask(SIDE), matrix)
        picture.lay(crop, box_mask(SIDE), matrix)
        off = np.abs(shown(canvas).astype(int) - picture.image)
        assert off.mean() < 1.5, (aspect, scale)
        limit = 10 if colour is COLOURS[2] else 3
        middle = shown(canvas)[height // 2 - 3 : height // 2 + 3, int(width * 0.45) - 3 : int(width * 0.45) + 3]
        assert np.abs(middle.astype(int) - level).max() <= limit
        for now, then in zip(canvas.frame.planes[3:], before[3:], strict=True):
            assert np.array_equal(now, then)  # alpha
        canvas = smooth(replace(facts, sample_aspect=aspect))
        canvas.lay(crop, box_mask(SIDE, padding=(0.5, 0, 0.5, 0)), matrix)
        assert all(np.array_equal(now, then) for now, then in zip(canvas.frame.planes, before, strict=True))


@pytest.mark.parametrize("pixel_format", FORMATS)
def test_samples_beside_the_face_keep_every_bit(pixel_format: str) -> None:
    facts = about(240, 180, pixel_format)
    frame = noise(facts)
    before = [plane.copy() for plane in frame.planes]
    canvas = FrameCanvas(frame, Square(facts))
    canvas.lay(np.zeros((SIDE, SIDE, 3), np.uint8), box_mask(SIDE), turned(1, 120, 90))
    width, height = facts.shown
    for now, then in zip(frame.planes, before, strict=True):
        changed = np.argwhere(now != then) * (height / now.shape[0], width / now.shape[1])
        if len(changed):
            assert np.hypot(*(changed - (90, 120)).T).max() < SIDE
    assert not np.array_equal(frame.planes[0], before[0])


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("place", [(-5.0, 60.0), (500.0, 500.0), (178.0, 134.0), (-300.0, 10.0)])
def test_a_face_at_the_edge_or_outside_changes_what_is_there(place: tuple[float, float], colour: Colour) -> None:
    facts = about(184, 136, "yuv420p10le", 90, colour)
    canvas = smooth(facts)
    picture = Still(shown(canvas).copy())
    crop, matrix = np.full((SIDE, SIDE, 3), 200, np.uint8), turned(1.5, *place)
    canvas.lay(crop, box_mask(SIDE), matrix)
    picture.lay(crop, box_mask(SIDE), matrix)
    assert np.abs(shown(canvas).astype(int) - picture.image).mean() < 0.8
    assert canvas.cut(invert(matrix), (SIDE, SIDE)).shape == (SIDE, SIDE, 3)


def test_a_part_that_changed_goes_back() -> None:
    facts = replace(about(160, 120, "yuv420p"), sample_aspect=(4, 3))
    canvas = smooth(facts)
    box = (20, 20, 100, 90)
    before = canvas.part(box)
    after = before.copy()
    after[20:50, 20:50] = 180
    canvas.change(box, before, after)
    assert np.abs(canvas.part(box)[24:46, 24:46].astype(int) - 180).max() <= 3


def test_legal_levels_stay_legal() -> None:
    facts = about(160, 120, "yuv420p")
    canvas = smooth(facts)
    canvas.lay(np.full((SIDE, SIDE, 3), (255, 0, 255), np.uint8), box_mask(SIDE), turned(1, 80, 60))
    assert canvas.frame.planes[0].min() >= 16
    assert max(int(plane.max()) for plane in canvas.frame.planes[1:]) <= 240
