"""Pixels that are not square: faces are looked for in pictures where they are, and nothing else is stretched."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from shared.video import planes
from shared.video.facts import Facts
from shared.video.frame import Frame
from shared.video.square import Square
from tests.unit.video.frames import about, noise


def anamorphic(aspect: tuple[int, int], rotation: int = 0) -> Facts:
    return replace(about(144, 116, "yuv444p", rotation), sample_aspect=aspect)


def disc(facts: Facts, centre: tuple[float, float], radius: float) -> Frame:
    """A disc on the screen, so an ellipse in the frame; upright as coded."""
    across, down = Square(facts).stretch
    ys, xs = np.mgrid[: facts.height, : facts.width]
    u, v = (xs + 0.5) * across - centre[0], (ys + 0.5) * down - centre[1]
    luma = np.where(np.hypot(u, v) < radius, 200, 60).astype(np.uint8)
    flat = np.full_like(luma, 128)
    return Frame((luma, flat, flat.copy()), facts.pixel_format, 0, 1, True)


@pytest.mark.parametrize("aspect", [(16, 11), (4, 3), (8, 9), (32, 27), (1, 2)])
def test_a_disc_is_round_and_where_it_is(aspect: tuple[int, int]) -> None:
    facts = anamorphic(aspect)
    square = Square(facts)
    middle = square.size[0] * 0.45, square.size[1] * 0.55
    frame = disc(facts, middle, 30)
    box = (20, 15, square.size[0] - 5, square.size[1] - 3)
    ys, xs = np.nonzero(square.bgr(frame, box)[..., 1] > 130)
    assert abs(np.ptp(xs) - np.ptp(ys)) <= 2
    assert abs(xs.mean() + box[0] + 0.5 - middle[0]) < 0.5
    assert abs(ys.mean() + box[1] + 0.5 - middle[1]) < 0.5
    small = square.small(frame, 80)
    assert max(small.shape[:2]) <= 80
    assert abs(small.shape[1] / small.shape[0] - square.size[0] / square.size[1]) < 0.05


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_what_was_changed_comes_where_it_belongs(rotation: int) -> None:
    facts = anamorphic((16, 11), rotation)
    square = Square(facts)
    frame = disc(replace(facts, rotation=0), (0, 0), 0)
    frame = Frame(tuple(plane.copy() for plane in frame.planes), facts.pixel_format, 0, 1, True)
    box = (10, 12, square.size[0] - 8, square.size[1] - 6)
    before = square.bgr(frame, box)
    after = before.copy()
    cv2.circle(after, (60, 40), 20, (180, 180, 180), -1)
    square.add(frame, box, before, after)
    again = square.bgr(frame, box)
    assert np.abs(again.astype(int) - after).mean() < 1.5
    changed = np.abs(again.astype(int) - before).max(-1) > 40
    ys, xs = np.nonzero(changed)
    assert abs(xs.mean() - 60) < 0.6
    assert abs(ys.mean() - 40) < 0.6


def test_nothing_changed_is_nothing_changed() -> None:
    facts = anamorphic((4, 3))
    frame = noise(facts)
    before = [plane.copy() for plane in frame.planes]
    square = Square(facts)
    box = (7, 9, 90, 80)
    seen = square.bgr(frame, box)
    square.add(frame, box, seen, seen.copy())
    assert all(np.array_equal(a, b) for a, b in zip(frame.planes, before, strict=True))


@pytest.mark.parametrize("aspect", [(1, 1), (0, 1), (100, 99)])
def test_square_pixels_are_seen_as_they_are(aspect: tuple[int, int]) -> None:
    facts = anamorphic(aspect)
    frame, square, box = noise(facts), Square(facts), (3, 4, 60, 70)
    assert square.plain
    assert square.size == facts.shown
    assert np.array_equal(square.bgr(frame, box), planes.bgr(frame, box, facts))
