"""Golden pictures: what the embedded swapper made of the astronaut on the day its looks were approved.

Target: herself as another: mirrored, features moved and enlarged, in a cool side light. No picture of other people is
kept. After a wanted change of looks, look at the new pictures and write them: `python -m tests.unit.vision.regild`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.vision.detector.centerface import CenterFace
from shared.vision.finder import find_faces
from shared.vision.landmarker.face_mesh import FaceMesh
from shared.vision.protocols import Floats, Image, SourceFace, SwapOptions, Target
from shared.vision.swapper.mesh import MeshSwapper

from . import drawn
from .conftest import Portrait

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
CASES: dict[str, dict[str, object]] = {
    "plain": {},
    "source_eyes": {"eyes": "source"},
    "no_shape": {"shape": 0.0},
    "glasses": {},
}
SAME = 0.996
"""Another version of cv2 gives 0.2 grey levels of difference (engine.md section 7)."""


def other_self(image: Image, mesh: Floats) -> Image:
    """Mirrored, mouth and nose lower and wider, cool light from one side, reduced."""
    height, width = image.shape[:2]
    xs, ys = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    (cx, cy), unit = mesh[[1, 13], :2].mean(0), drawn.eye_distance(mesh)
    near = np.exp(-(((xs - cx) ** 2 + (ys - cy) ** 2) / (0.6 * unit) ** 2))
    moved = cv2.remap(image, xs + (cx - xs) * 0.15 * near, ys - 0.07 * unit * near, cv2.INTER_CUBIC)
    x0, x1 = mesh[:, 0].min(), mesh[:, 0].max()
    light = 0.55 + 0.55 * np.clip((xs - x0) / (x1 - x0), 0, 1)
    lit = np.clip(moved * light[..., None] * np.float32([1.1, 0.97, 0.85]), 0, 255).astype(np.uint8)
    return np.ascontiguousarray(lit[:256, 96:352][:, ::-1])


def make(case: str, portrait: Portrait, tools: tuple[CenterFace, FaceMesh, MeshSwapper]) -> tuple[Image, Image]:
    """The target and the result, cut to the face."""
    detector, landmarker, swapper = tools
    source = portrait.faces[0].mesh
    target = other_self(portrait.image, source)
    mesh = find_faces(target, detector, landmarker)[0].mesh
    if case == "glasses":
        target = drawn.with_glasses(target, mesh)
    result = target.copy()
    identity = swapper.prepare([SourceFace(portrait.image, source)])
    swapper.swap(result, [Target(mesh, identity)], SwapOptions(**CASES[case]))  # type: ignore[arg-type]
    x, y = mesh[:, :2].mean(0).astype(int)
    cut = np.s_[y - 52 : y + 60, x - 48 : x + 48]
    return target[cut], result[cut]


def ssim(a: Image, b: Image) -> float:
    """Wang et al. 2004: Gaussian window of 1.5 pixels, the constants of the paper, mean over pixels and channels."""
    x, y = a.astype(np.float64), b.astype(np.float64)

    def mean(z: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.asarray(cv2.GaussianBlur(z, (11, 11), 1.5))

    mx, my = mean(x), mean(y)
    vx, vy, vxy = mean(x * x) - mx**2, mean(y * y) - my**2, mean(x * y) - mx * my
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return float(((2 * mx * my + c1) * (2 * vxy + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))).mean())


@pytest.fixture(scope="module")
def made(
    portrait: Callable[[str], Portrait], detector: CenterFace, landmarker: FaceMesh, swapper: MeshSwapper
) -> dict[str, tuple[Image, Image]]:
    return {case: make(case, portrait("astronaut"), (detector, landmarker, swapper)) for case in CASES}


def golden(case: str) -> Image:
    image = cv2.imread(str(GOLDEN / f"{case}.png"), cv2.IMREAD_COLOR)
    assert image is not None
    return image.astype(np.uint8)


@pytest.mark.parametrize("case", CASES)
def test_the_swap_looks_as_it_was_approved(made: dict[str, tuple[Image, Image]], case: str) -> None:
    assert ssim(made[case][1], golden(case)) > SAME
    assert np.abs(made[case][1].astype(int) - golden(case)).mean() < 1.0


@pytest.mark.parametrize("case", CASES)
def test_a_golden_picture_would_notice(made: dict[str, tuple[Image, Image]], case: str) -> None:
    """The target as it was, and every other case's result, fail the comparison."""
    others = [made[name][1] for name in CASES if name != case]
    assert all(ssim(other, golden(case)) < SAME for other in [made[case][0], *others])


def test_ssim_of_known_pictures() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (40, 40, 3)).astype(np.uint8)
    assert ssim(picture, picture) == pytest.approx(1)
    flat = [np.full((40, 40, 3), level, np.uint8) for level in (100, 150)]
    assert ssim(*flat) == pytest.approx((2 * 100 * 150 + 6.5025) / (100**2 + 150**2 + 6.5025), rel=1e-6)
