"""inswapper's stand-in through insightface's own INSwapper and through ours, on the same faces.

insightface (MIT) is the oracle: its alignment, its latent, its paste-back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest

from shared.vision.geometry import five_points
from shared.vision.learned import LearnedSwapper
from shared.vision.protocols import Floats, Image, SourceFace, SwapOptions, Target
from shared.vision.runtime import Runtime
from tests.standins.insight import InsightFace, insightface_swapper
from tests.standins.world import FixedEmbedder, StandIns
from tests.unit.vision.conftest import Portrait

pytest.importorskip("insightface", reason="insightface is not installed (tests/requirements-no-deps.txt)")
pytestmark = pytest.mark.filterwarnings("ignore:`estimate` is deprecated:FutureWarning")
"""insightface 2.1 calls scikit-image 0.26 by an old name."""

RAW = np.random.default_rng(5).standard_normal(512).astype(np.float32)
"""An embedding about as long as ArcFace's."""


@pytest.fixture(scope="module")
def standins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    return StandIns(tmp_path_factory.mktemp("standins"))


@pytest.fixture(scope="module")
def ours(standins: StandIns, runtime: Runtime) -> LearnedSwapper:
    return standins.swapper("inswapper", runtime, embedder=FixedEmbedder({0: RAW}), exact=True)


@pytest.fixture(scope="module")
def theirs(standins: StandIns) -> Any:
    return insightface_swapper(standins.files("inswapper")["model"])


def identity(swapper: LearnedSwapper) -> Any:
    return swapper.prepare([SourceFace(np.zeros((9, 9, 3), np.uint8), np.zeros((468, 3), np.float32))])


@pytest.mark.parametrize("name", ["t1", "astronaut"])
def test_crops_are_within_one_level(
    name: str, ours: LearnedSwapper, theirs: Any, portrait: Callable[[str], Portrait]
) -> None:
    found = portrait(name)
    source = identity(ours)
    swapped = ours.swapped(found.image, [Target(face.mesh, source) for face in found.faces], SwapOptions())
    assert len(swapped.crops) == len(found.faces) == {"t1": 6, "astronaut": 1}[name]
    for face, crop, picture in zip(found.faces, swapped.crops, swapped.pictures, strict=True):
        expected, matrix = theirs.get(found.image, InsightFace.at(face.mesh), InsightFace.who(RAW), paste_back=False)
        np.testing.assert_allclose(crop.matrix, matrix, atol=1e-4)
        assert np.abs(picture.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("name", ["t1", "astronaut"])
def test_pasted_frames_are_within_one_level(
    name: str, ours: LearnedSwapper, theirs: Any, portrait: Callable[[str], Portrait]
) -> None:
    found = portrait(name)
    source = identity(ours)
    for face in found.faces:
        expected = theirs.get(found.image, InsightFace.at(face.mesh), InsightFace.who(RAW), paste_back=True)
        frame = found.image.copy()
        ours.swap(frame, [Target(face.mesh, source)], SwapOptions())
        assert (frame != found.image).any()
        assert np.abs(frame.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("width", [100, 400, 800])
@pytest.mark.parametrize("place", [(0, 0), (37, 91), (1500, 501)])
def test_wherever_and_however_large_a_face_is(
    width: int, place: tuple[int, int], ours: LearnedSwapper, theirs: Any, portrait: Callable[[str], Portrait]
) -> None:
    """One level, and two at 800 pixels: the mask begins where a share is over 20 of 255, one float's last digit."""
    frame, mesh = enlarged(portrait("astronaut"), width)
    x, y = place
    frame = np.asarray(cv2.copyMakeBorder(frame, y, 200, x, 300, cv2.BORDER_REFLECT_101), np.uint8)
    mesh = mesh + np.array([x, y, 0], np.float32)
    expected = theirs.get(frame, InsightFace.at(mesh), InsightFace.who(RAW), paste_back=True)
    result = frame.copy()
    ours.swap(result, [Target(mesh, identity(ours))], SwapOptions())
    assert (result != frame).any()
    assert np.abs(result.astype(int) - expected).max() <= (2 if width == 800 else 1)


def test_our_own_way_shows_the_same_face(
    ours: LearnedSwapper, standins: StandIns, runtime: Runtime, theirs: Any, portrait: Callable[[str], Portrait]
) -> None:
    """Without `exact`: averaged instead of aliased, another feather, but the same face in the same place."""
    found = portrait("astronaut")
    swapper = standins.swapper("inswapper", runtime, embedder=FixedEmbedder({0: RAW}))
    mesh = found.faces[0].mesh
    frame = found.image.copy()
    swapper.swap(frame, [Target(mesh, identity(swapper))], SwapOptions())
    expected = theirs.get(found.image, InsightFace.at(mesh), InsightFace.who(RAW), paste_back=True)
    x, y = five_points(mesh)[2].astype(int)
    middle = np.s_[y - 20 : y + 20, x - 20 : x + 20]
    assert np.abs(frame[middle].astype(int) - expected[middle]).mean() < 4
    assert np.abs(found.image[middle].astype(int) - expected[middle]).mean() > 12


def enlarged(found: Portrait, width: int) -> tuple[Image, Floats]:
    """The surroundings of the first face so that it is `width` pixels wide, and its mesh there."""
    mesh = found.faces[0].mesh
    factor = np.float32(width / np.ptp(mesh[:, 0]))
    (x0, y0), (x1, y1) = (mesh[:, :2].min(0) - 30).astype(int), (mesh[:, :2].max(0) + 30).astype(int)
    part = found.image[max(y0, 0) : y1, max(x0, 0) : x1]
    frame = cv2.resize(part, None, fx=float(factor), fy=float(factor), interpolation=cv2.INTER_CUBIC)
    return np.asarray(frame, np.uint8), (mesh - np.float32([max(x0, 0), max(y0, 0), 0])) * factor
