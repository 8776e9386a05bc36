"""What analysis sees of a frame, and what goes back: exact where nothing changed, right where something did."""

from __future__ import annotations

import itertools

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared.video import planes, tone, turning
from shared.video.facts import Colour, Facts
from shared.video.formats import layout, planar
from shared.video.frame import Frame
from shared.video.matrices import legal
from tests.unit.video.frames import about, noise

FORMATS = (
    *("yuv420p", "yuv422p", "yuv444p", "yuv411p", "yuv410p", "yuv440p", "yuva420p", "gray", "gbrp", "gbrap"),
    *("yuv420p10le", "yuv422p10le", "yuv444p12le", "yuva444p16le", "gray10le", "gbrp12le", "gbrap16le"),
)
COLOURS = (
    Colour(),
    Colour(True, 1, 1, 1),
    Colour(False, 9, 1, 9),
    Colour(False, 9, tone.PQ, 9),
    Colour(False, 9, tone.HLG, 9),
)
ROTATIONS = (0, 90, 180, 270)


def flat(facts: Facts, level: tuple[int, int, int]) -> Frame:
    """One colour, as FFmpeg's scaler writes it."""
    picture = np.full((facts.height, facts.width, 3), level, np.uint8)
    frame = av.VideoFrame.from_ndarray(picture, format="bgr24").reformat(
        format=facts.pixel_format, dst_colorspace=_SWS[facts.colour.matrix], dst_color_range=1 + facts.colour.full_range
    )
    form = layout(facts.pixel_format)
    kind = np.uint8 if form.bytes == 1 else np.uint16
    found = []
    for plane, (rows, columns) in zip(frame.planes, form.shapes(facts.width, facts.height), strict=True):
        found.append(np.frombuffer(memoryview(plane), kind).reshape(plane.height, -1)[:rows, :columns].copy())
    return Frame(tuple(found), facts.pixel_format, 0, 1, True)


_SWS = {1: 1, 2: 5, 5: 5, 6: 5, 9: 9}


@pytest.mark.parametrize(("pixel_format", "rotation"), [*itertools.product(FORMATS, ROTATIONS)])
def test_vid_05_what_was_not_changed_stays_bit_for_bit(pixel_format: str, rotation: int) -> None:
    for colour in COLOURS:
        facts = about(101, 77, pixel_format, rotation, colour)
        frame = noise(facts)
        before = [plane.copy() for plane in frame.planes]
        width, height = facts.shown
        for box in ((0, 0, width, height), (5, 7, 40, 33), (width - 9, height - 11, width, height)):
            seen = planes.bgr(frame, box, facts)
            assert seen.shape == (box[3] - box[1], box[2] - box[0], 3)
            planes.add(frame, box, seen, seen.copy(), facts)
            assert all(np.array_equal(now, then) for now, then in zip(frame.planes, before, strict=True))


@pytest.mark.parametrize(("pixel_format", "rotation"), [*itertools.product(FORMATS, ROTATIONS)])
def test_a_change_lands_where_it_was_made_and_nowhere_else(pixel_format: str, rotation: int) -> None:
    facts = about(101, 77, pixel_format, rotation, COLOURS[1])
    level = (100, 100, 100) if pixel_format.startswith("gray") else (90, 110, 130)
    frame = flat(facts, level)
    alpha = frame.planes[-1].copy() if layout(pixel_format).alpha else None
    width, height = facts.shown
    whole, box = (0, 0, width, height), (width - 41, 16, width, 48)
    before = planes.bgr(frame, whole, facts)
    seen = planes.bgr(frame, box, facts)
    wanted = seen.copy()
    wanted[8:24, 9:] = np.array(level) + 40
    planes.add(frame, box, seen, wanted, facts)
    now = planes.bgr(frame, whole, facts)
    assert np.abs(now[28:36, width - 24 :].astype(int) - np.array(level) - 40).max() <= 2
    now[12:52, width - 44 :] = before[12:52, width - 44 :]
    assert np.array_equal(now, before)
    if alpha is not None:
        assert np.array_equal(frame.planes[-1], alpha)


@pytest.mark.parametrize(
    ("pixel_format", "colour"),
    [
        *itertools.product(("yuv420p", "yuv444p", "yuv422p10le", "yuv420p12le"), (Colour(), Colour(True, 1, 1, 1))),
        ("yuv420p", Colour(False, 1, 1, 1)),
        ("yuv420p10le", Colour(False, 9, 1, 9)),
        ("gbrp", Colour(True, 1, 13, 0)),
        ("gbrp10le", Colour(True, 1, 13, 0)),
    ],
)
def test_colours_are_those_of_ffmpegs_own_scaler(pixel_format: str, colour: Colour) -> None:
    for level in ((0, 0, 0), (255, 255, 255), (128, 128, 128), (200, 40, 60), (30, 180, 90), (70, 110, 230)):
        facts = about(64, 48, pixel_format, 0, colour)
        if colour.matrix == 0:
            facts = about(64, 48, pixel_format, 0, Colour(True, 1, 13, 2))
        seen = planes.bgr(flat(facts, level), (0, 0, 64, 48), facts)
        assert np.abs(seen.astype(int) - level).max() <= 3, level


def test_vid_05_full_range_keeps_black_and_white() -> None:
    facts = about(64, 48, "yuv420p", 0, Colour(True, 1, 1, 1))
    for luma, shown in ((0, 0), (255, 255)):
        grey = (np.full((48, 64), luma, np.uint8), *(np.full((24, 32), 128, np.uint8) for _ in range(2)))
        frame = Frame(grey, "yuv420p", 0, 1, True)
        seen = planes.bgr(frame, (0, 0, 64, 48), facts)
        assert seen.min() == seen.max() == shown
    frame = flat(facts, (128, 128, 128))
    seen = planes.bgr(frame, (0, 0, 64, 48), facts)
    planes.add(frame, (0, 0, 64, 48), seen, np.zeros_like(seen), facts)
    assert frame.planes[0].max() == 0


def test_what_was_outside_the_legal_range_may_stay_there_and_nothing_else_gets_there() -> None:
    facts = about(64, 48, "yuv420p")
    grey = (np.full((48, 64), 250, np.uint8), *(np.full((24, 32), 128, np.uint8) for _ in range(2)))
    frame = Frame(grey, "yuv420p", 0, 1, True)
    box = (0, 0, 64, 48)
    seen = planes.bgr(frame, box, facts)
    darker = np.full_like(seen, 245)
    planes.add(frame, box, seen, darker, facts)
    assert 235 < frame.planes[0][0, 0] < 250, "a highlight beyond white is dimmed, not cut"
    planes.add(frame, box, np.zeros_like(seen), np.full_like(seen, 255), facts)
    assert frame.planes[0].max() <= 250
    assert legal(facts, 0) == (16, 235)
    assert legal(about(8, 8, "yuv420p10le"), 1) == (64, 960)


@pytest.mark.parametrize("transfer", [tone.PQ, tone.HLG])
def test_vid_05_high_dynamic_range_is_shown_as_it_looks_and_goes_back(transfer: int) -> None:
    ramp = np.linspace(0, 4095, 512).astype(np.uint16)
    grey = np.repeat(ramp[None, :, None], 3, axis=2)
    seen = tone.shown(grey, transfer)[0, :, 0].astype(int)
    assert (np.diff(seen) >= 0).all()
    assert seen[0] == 0
    assert seen[-1] == 255
    white = {tone.PQ: 0.5807, tone.HLG: 0.75}[transfer]  # BT.2408: 203 cd/m2
    assert 215 <= np.interp(white * 4095, ramp, seen) <= 240
    skin = {tone.PQ: 0.45, tone.HLG: 0.45}[transfer]
    assert 90 <= np.interp(skin * 4095, ramp, seen) <= 190, "a face is exposed as in an ordinary picture"
    back = tone.signal(tone.shown(grey, transfer), transfer)[0, :, 0]
    inside = (seen > 20) & (seen < 250)
    assert np.abs(back - ramp / 4095)[inside].max() < 0.02


@pytest.mark.parametrize("transfer", [tone.PQ, tone.HLG])
def test_vid_05_a_change_of_high_dynamic_range_is_seen_again(transfer: int) -> None:
    facts = about(128, 96, "yuv420p10le", 0, Colour(False, 9, transfer, 9))
    frame = Frame(
        (np.full((96, 128), 400, np.uint16), np.full((48, 64), 490, np.uint16), np.full((48, 64), 540, np.uint16)),
        facts.pixel_format,
        0,
        1,
        True,
    )
    box = (10, 10, 110, 90)
    seen = planes.bgr(frame, box, facts)
    wanted = np.clip(seen.astype(int) + np.array([10, 20, 25]), 0, 255).astype(np.uint8)
    planes.add(frame, box, seen, wanted, facts)
    again = planes.bgr(frame, box, facts)
    assert np.abs(again[10:-10, 10:-10].astype(int) - wanted[10:-10, 10:-10]).max() <= 3
    assert frame.planes[0].max() > 255, "still ten bits"


@given(st.sampled_from(ROTATIONS), st.integers(1, 60), st.integers(1, 60), st.data())
def test_boxes_turn_as_pictures_do(rotation: int, width: int, height: int, data: st.DataObject) -> None:
    facts = about(width, height, "yuv444p", rotation)
    image = np.arange(width * height, dtype=np.int64).reshape(height, width)
    shown = np.rot90(image, rotation // 90)
    assert shown.shape == facts.shown[::-1]
    x0, x1 = sorted(data.draw(st.tuples(*[st.integers(0, facts.shown[0])] * 2)))
    y0, y1 = sorted(data.draw(st.tuples(*[st.integers(0, facts.shown[1])] * 2)))
    left, top, right, bottom = turning.coded((x0, y0, x1, y1), facts)
    found = np.rot90(image[top:bottom, left:right], rotation // 90)
    assert np.array_equal(found, shown[y0:y1, x0:x1])
    assert turning.clip((x0 - 100, y0 - 100, x1 + 100, y1 + 100), facts) == (0, 0, *facts.shown)


def test_the_way_back_of_a_turn() -> None:
    image: NDArray[np.uint8] = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    for rotation in ROTATIONS:
        assert np.array_equal(turning.back(turning.upright(image, rotation), rotation), image)


@pytest.mark.parametrize("pixel_format", ["yuv420p", "yuv420p10le", "gray", "gbrap"])
def test_a_small_picture_shows_what_the_whole_one_does(pixel_format: str) -> None:
    facts = about(1280, 720, pixel_format, 90, COLOURS[1])
    frame = flat(facts, (60, 120, 180))
    frame.planes[0][:360] = 0
    seen = planes.small(frame, 320, facts)
    assert seen.shape == (320, 180, 3)
    whole = planes.bgr(frame, (0, 0, 720, 1280), facts)
    assert np.abs(seen[20:-20:40, 5].astype(int) - whole[80:-80:160, 20]).max() <= 3
    assert planes.small(frame, 5000, facts).shape == whole.shape, "never enlarged"


def test_formats() -> None:
    assert planar("yuvj422p") == "yuv422p"
    assert planar("nv12") == "yuv420p"
    assert planar("yuv420p10be") == "yuv420p10le"
    assert planar("bgra") == "gbrap"
    assert planar("pal8") == "gbrap"
    for name in ("cuda", "xyz12le", "bayer_rggb8"):
        with pytest.raises(ValueError, match=name):
            planar(name)
    assert layout("yuv410p").shapes(101, 77) == ((77, 101), (20, 26), (20, 26))
