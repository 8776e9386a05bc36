"""Smoothing: what trembles is still, what moves moves as it did, and on time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from shared.imaging.geometry import Doubles
from shared.vision.protocols import Floats
from shared.vision.tracking import smoothing
from shared.vision.tracking.flow import shift
from shared.vision.tracking.smoothing import average, runs

from .world import mesh_at

FRAMES, NOISE = 60, 0.12
LIDS = slice(100, 130)


def smooth(meshes: Floats, ways: Sequence[Doubles | None]) -> Floats:
    """All runs, one after the other."""
    found = runs(len(meshes), lambda low, high: meshes[low:high], ways)
    return np.concatenate([part for _, part in found])


def noisy(clean: Floats, seed: int = 0) -> Floats:
    return (clean + np.random.default_rng(seed).normal(0, NOISE, clean.shape)).astype(np.float32)


def rms(a: Floats, b: Floats) -> float:
    return float(np.sqrt(((a - b)[..., :2] ** 2).mean()))


def along(xs: Floats) -> tuple[Floats, list[Doubles | None]]:
    """A face that moves so, and the pixels' motion."""
    meshes = np.stack([mesh_at(200 + x, 120, 150) for x in xs])
    return meshes, [None, *(shift(float(step), 0) for step in np.diff(xs))]


PATHS = {
    "still": np.zeros(FRAMES),
    "walk": np.arange(FRAMES) * 3.3,
    "sway": 30 * np.sin(np.arange(FRAMES) / 4),
    "jerk": np.where(np.arange(FRAMES) < 30, 0.0, 40.0),
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("told", [True, False])
def test_noise_goes_and_motion_stays(name: str, told: bool) -> None:
    """`told`: whether the pixels showed the motion; without, the meshes' own stands in and some noise stays."""
    clean, ways = along(PATHS[name].astype(np.float32))
    steady = smooth(noisy(clean), ways if told else [None] * FRAMES)
    assert rms(steady, clean) < (0.45 if told else 0.6) * NOISE
    lag = float((steady - clean)[..., 0].mean())
    assert abs(lag) < 0.02


def test_a_blink_stays_a_blink() -> None:
    clean, ways = along(np.zeros(FRAMES, np.float32))
    clean[29:32, LIDS, 1] += 4
    steady = smooth(noisy(clean), ways)
    assert steady[30, LIDS, 1].mean() - steady[20, LIDS, 1].mean() > 3.6
    assert abs(steady[25, LIDS, 1].mean() - steady[20, LIDS, 1].mean()) < 0.3


@pytest.mark.parametrize("count", [1, 2, 3, 600])
def test_clips_of_any_length(count: int) -> None:
    meshes = np.stack([mesh_at(100, 100, 80)] * count)
    assert np.allclose(smooth(meshes, [None] * count), meshes, atol=1e-3)


def test_a_long_clip_is_smoothed_in_runs_that_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    clean, ways = along((40 * np.sin(np.arange(240) / 9)).astype(np.float32))
    shaken = noisy(clean)
    whole = smooth(shaken, ways)
    monkeypatch.setattr(smoothing, "_RUN", 80)
    apart = np.abs(smooth(shaken, ways) - whole)[..., :2].max(axis=(1, 2))
    assert apart.max() < NOISE / 2
    assert apart[[79, 80, 159, 160]].max() <= 2 * np.median(apart)


def test_a_line_is_its_own_average_also_at_its_ends() -> None:
    line = np.arange(40.0)[:, None] * 2.5 + 7
    assert np.allclose(average(line, 5.0), line)


def test_an_average_does_not_depend_on_how_long_the_clip_is() -> None:
    values = np.random.default_rng(1).normal(size=(700, 3))
    assert np.allclose(average(values, 5.0)[100:200], average(values[60:240], 5.0)[40:140])
