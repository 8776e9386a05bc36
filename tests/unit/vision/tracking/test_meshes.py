"""Meshes that are kept in whole steps: what was put in comes out, and takes half the room."""

from __future__ import annotations

import numpy as np

from shared.vision.tracking.meshes import Meshes, Seen
from shared.vision.tracking.trail import Trail

from .world import mesh_at


def some(count: int = 150) -> np.ndarray:
    return np.stack([mesh_at(300 + 7.3 * number, 400 - number, 380) for number in range(count)])


def test_meshes_are_as_exact_as_they_need_to_be_in_half_the_room() -> None:
    values = some()
    kept = Meshes.of(values)
    assert np.abs(np.asarray(kept) - values).max() < 0.01
    assert np.array_equal(kept[3], np.asarray(kept)[3])
    assert np.array_equal(kept[np.array([5, 2])], np.asarray(kept)[[5, 2]])
    assert kept.packed.nbytes == values.nbytes / 2
    again = Meshes.of(np.asarray(kept))
    assert np.abs(np.asarray(again) - np.asarray(kept)).max() < 0.005


def test_a_small_face_far_from_the_corner_stays_in_one_piece() -> None:
    values = np.stack([mesh_at(12, 12000 + 3.7003 * number, 18.0007) for number in range(900)])
    values[..., 2] *= np.float32(0.3)  # so that the widest is one of the two that are far away
    assert np.abs(np.asarray(Meshes.of(values)) - values).max() < 0.01


def test_meshes_go_where_they_are_put() -> None:
    values, places = some(), np.random.default_rng(0).permutation(150)
    kept = Meshes.room(150)
    kept.put(places, values)
    assert np.abs(kept[places] - values).max() < 0.01


def test_a_face_that_was_missed_is_on_the_line_between() -> None:
    values, seen = some(), Seen()
    for number, mesh in enumerate(values):
        seen.append(None if number in (70, 71, 72) else mesh)
    assert seen[70] is seen[72] is None
    assert seen.seen.sum() == 147
    assert [mesh is None for mesh in seen] == [number in (70, 71, 72) for number in range(150)]
    found = seen.bridged(60, 90)
    assert found.shape == (30, 468, 3)
    line = values[69] + (values[73] - values[69]) * np.float32(0.5)
    assert np.abs(found[11] - line).max() < 0.02
    assert np.abs(found[20] - values[80]).max() < 0.01
    assert np.abs(seen.bridged(71, 72)[0] - line).max() < 0.02, "whatever part is asked for"


def test_what_was_seen_on_the_way_back_comes_first() -> None:
    values, trail, back = some(6), Trail(10), Trail(0)
    for mesh in values[3:]:
        trail.meshes.append(mesh)
    for mesh in values[3::-1]:
        back.meshes.append(mesh)
    for one, count in ((trail, 3), (back, 4)):
        one.ways, one.boxes, one.hidden, one.scores = [None] * count, [None] * count, [False] * count, [0.9] * count
    trail.prepend(back)
    assert (trail.first, trail.stop) == (7, 13)
    assert np.abs(trail.meshes.bridged(0, 6) - values).max() < 0.01
    trail.meshes.append(None)
    for values_ in (trail.ways, trail.boxes, trail.hidden, trail.scores):
        values_.append(values_[-1])  # type: ignore[attr-defined]
    trail.trim()
    assert len(trail.meshes) == len(trail.scores) == 6
    trail.meshes.clear()
    assert len(trail.meshes) == 0
