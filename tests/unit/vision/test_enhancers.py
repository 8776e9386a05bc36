"""Face restorers: every number in and out against values worked out by hand, and nothing outside the face."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from shared.imaging.canvas import Still
from shared.vision.canonical import canonical
from shared.vision.enhancer.restorer import Restorer
from shared.vision.geometry import five_points
from shared.vision.protocols import Floats, Image, ModelAssets
from shared.vision.runtime import Runtime
from shared.vision.templates import template
from tests.standins import enhancers

Make = Callable[..., Restorer]
SIDE, MARGIN = {"ffhq_512": 4.066, "arcface_128": 3.632}, 3
"""Sides of the crops in eye distances (1 / the distance of the template's eyes), and slack for sampling in pixels."""


@pytest.fixture
def make(tmp_path: Path, runtime: Runtime) -> Make:
    def restorer(family: str, **network: Any) -> Restorer:
        parameters = dict(enhancers.FAMILIES[family])
        files = enhancers.build(tmp_path, parameters, **network)
        return Restorer(ModelAssets(family, files, parameters), runtime)

    return restorer


def face(x: float, y: float, eyes: float = 60.0, turn: float = 0.0) -> Floats:
    """A mean face whose outer eye corners are `eyes` pixels apart, turned clockwise by degrees."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    flat = canonical().mean[:, :2] @ np.array([[c, s], [-s, c]]) * eyes + (x, y)
    return np.column_stack([flat, canonical().mean[:, 2] * eyes]).astype(np.float32)


def noise(height: int = 300, width: int = 400) -> Image:
    return np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)


def outside(frame: Image, mesh: Floats, family: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where no pixel may change: beyond the crop, a square round the face, wherever it is turned."""
    name = str(enhancers.FAMILIES[family]["template"])
    points = five_points(mesh)
    side = SIDE[name] * float(np.hypot(*(points[1] - points[0])))
    at, _ = cv2.estimateAffinePartial2D(template(name).astype(np.float32), points, method=cv2.LMEDS)
    centre = at[:, :2] @ (0.5, 0.5) + at[:, 2]
    ys, xs = np.mgrid[: frame.shape[0], : frame.shape[1]]
    return np.asarray(np.hypot(xs - centre[0], ys - centre[1]) > side * 1.08 / np.sqrt(2) + MARGIN)


def test_levels_go_in_as_minus_one_to_one_and_come_back_clipped_and_rounded(make: Make) -> None:
    """BGR (10, 128, 250) is RGB (0.9608, 0.0039, -0.9216); * 1.5 + (0, 0.1, 0.2) is (1.4412, 0.1059, -1.1824)."""
    frame = np.full((300, 400, 3), (10, 128, 250), np.uint8)
    make("gfpgan", gain=1.5, shift=(0.0, 0.1, 0.2)).enhance(Still(frame), [face(200, 150)], 1.0)
    assert frame[150, 200].tolist() == [0, 141, 255]  # (0.1059 + 1) * 127.5 = 141.0


def test_blend_is_the_share_of_the_restored_face(make: Make) -> None:
    frame = np.full((300, 400, 3), 100, np.uint8)
    make("gfpgan", shift=(0.4, 0.4, 0.4)).enhance(Still(frame), [face(200, 150)], 0.8)
    assert frame[150, 200].tolist() == [141] * 3  # 100 + 0.8 * 0.4 * 127.5 = 140.8


@pytest.mark.parametrize("family", ["gfpgan", "gpen_256"])
def test_blend_zero_and_no_faces_change_nothing(make: Make, family: str) -> None:
    frame, restorer = noise(), make(family, gain=-1.0)
    before = frame.copy()
    restorer.enhance(Still(frame), [face(200, 150)], 0.0)
    restorer.enhance(Still(frame), [], 1.0)
    assert np.array_equal(frame, before)


@pytest.mark.parametrize("family", sorted(enhancers.FAMILIES))
@pytest.mark.parametrize("turn", [0.0, 35.0])
def test_no_pixel_outside_the_face_s_crop_changes(make: Make, family: str, turn: float) -> None:
    frame, mesh = noise(), face(200, 150, 40, turn)
    before = frame.copy()
    make(family, gain=-1.0, shift=(0.2, 0.2, 0.2)).enhance(Still(frame), [mesh], 1.0)
    changed = (frame != before).any(axis=2)
    assert changed.sum() > 40 * 40
    assert not (changed & outside(frame, mesh, family)).any()


@pytest.mark.parametrize("family", ["gfpgan", "gpen_256", "gpen_1024", "gpen_2048"])
@pytest.mark.parametrize("turn", [0.0, -25.0])
def test_each_family_sees_the_face_at_its_own_template(make: Make, family: str, turn: float) -> None:
    """A white spot where the template has the viewer's left eye must appear on that eye of the mesh."""
    parameters = enhancers.FAMILIES[family]
    size, name = int(parameters["size"]), str(parameters["template"])
    x, y = (round(float(value) * size) for value in template(name)[0])
    frame, mesh = np.full((400, 500, 3), 60, np.uint8), face(250, 200, 60, turn)
    make(family, spot=(x, y)).enhance(Still(frame), [mesh], 1.0)
    rows, columns = np.nonzero(frame[:, :, 0] > 62)
    found = np.array([columns.mean(), rows.mean()])
    # the five points of a mean face fit each template to within a tenth of the eye distance
    assert np.hypot(*(found - five_points(mesh)[0])) < 0.1 * 40


@pytest.mark.parametrize("family", ["gfpgan", "codeformer"])
@pytest.mark.parametrize("batch", ["batch", 1])
def test_all_faces_at_once_are_the_faces_one_by_one(make: Make, family: str, batch: int | str) -> None:
    meshes = [face(90, 100, 30), face(210, 180, 25, 20), face(330, 90, 35, -10)]
    restorer = make(family, gain=0.7, shift=(0.1, -0.1, 0.0), batch=batch)
    together, alone = noise(), noise()
    restorer.enhance(Still(together), meshes, 0.8)
    for mesh in meshes:
        restorer.enhance(Still(alone), [mesh], 0.8)
    assert np.array_equal(together, alone)


def test_codeformer_s_weight_is_a_double_and_stands_in_the_table(tmp_path: Path, runtime: Runtime) -> None:
    """Half the weight halves what goes in: 0.2 * 0.25 = 0.05, (0.05 + 1) * 127.5 = 133.9."""
    parameters = {**enhancers.FAMILIES["codeformer"], "weight": 0.25}
    assets = ModelAssets("codeformer", enhancers.build(tmp_path, parameters), parameters)
    frame = np.full((300, 400, 3), 153, np.uint8)
    Restorer(assets, runtime).enhance(Still(frame), [face(200, 150)], 1.0)
    assert frame[150, 200].tolist() == [134] * 3
    frame[:] = 153
    default = ModelAssets("codeformer", assets.files, enhancers.FAMILIES["codeformer"])
    Restorer(default, runtime).enhance(Still(frame), [face(200, 150)], 1.0)
    assert frame[150, 200].tolist() == [140] * 3  # 0.2 * 0.5 = 0.1


def test_a_network_that_changes_nothing_darkens_nothing(make: Make) -> None:
    frame = cv2.GaussianBlur(noise(), (0, 0), 4)
    before = frame.copy()
    for _ in range(3):
        make("gfpgan").enhance(Still(frame), [face(200, 150)], 1.0)  # type: ignore[arg-type]
    difference = frame.astype(int) - before
    assert abs(difference.mean()) < 0.02
    assert np.abs(difference).max() <= 3


def test_a_face_at_the_picture_s_edge(make: Make) -> None:
    frame = noise()
    before = frame.copy()
    make("gfpgan", gain=0.5).enhance(Still(frame), [face(3, 150), face(200, 298), face(-500, -500)], 1.0)
    assert (frame[100:200, :20] != before[100:200, :20]).any()
    assert (frame[290:, 180:220] != before[290:, 180:220]).any()
    assert np.array_equal(frame[:60, 150:], before[:60, 150:])


def test_warming_runs_the_network(make: Make) -> None:
    make("codeformer").warm()
