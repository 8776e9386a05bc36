"""What engine.md section 3 lists as seen to fail: kept out of the swap, or said with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean

import cv2
import numpy as np
import pytest

from shared.vision.detector.centerface import CenterFace
from shared.vision.finder import find_faces
from shared.vision.landmarker.face_mesh import FaceMesh
from shared.vision.protocols import Floats, Image, SourceFace, SwapOptions, Target
from shared.vision.swapper.mesh import MeshSwapper
from shared.vision.swapper.source import MeshIdentity

from . import drawn
from .conftest import Portrait


@dataclass(frozen=True)
class Scene:
    """A picture and its largest face's mesh, as the product finds it there."""

    image: Image
    mesh: Floats


Change = Callable[[Image, Floats], Image]
Make = Callable[..., Scene]


@pytest.fixture(scope="module")
def scene(portrait: Callable[[str], Portrait], detector: CenterFace, landmarker: FaceMesh) -> Make:
    def make(change: Change | None = None, name: str = "astronaut", index: int = 0) -> Scene:
        face = portrait(name).faces[index]
        if change is None:
            return Scene(portrait(name).image, face.mesh)
        image = change(portrait(name).image, face.mesh)
        centre = face.mesh.mean(0)
        found = find_faces(image, detector, landmarker)
        return Scene(image, min(found, key=lambda f: float(np.linalg.norm(f.mesh.mean(0) - centre))).mesh)

    return make


@pytest.fixture
def prepare(swapper: MeshSwapper) -> Callable[[Scene], MeshIdentity]:
    return lambda one: swapper.prepare([SourceFace(one.image, one.mesh)])


@pytest.fixture
def swap(swapper: MeshSwapper, prepare: Callable[[Scene], MeshIdentity]) -> Callable[[Scene, Scene], Image]:
    def run(source: Scene, target: Scene) -> Image:
        frame = target.image.copy()
        swapper.swap(frame, [Target(target.mesh, prepare(source))], SwapOptions(shape=0.0))
        return frame

    return run


Swap = Callable[[Scene, Scene], Image]
Prepare = Callable[[Scene], MeshIdentity]


def difference(a: Image, b: Image, where: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    return float(np.abs(a.astype(int) - b)[where].mean())


def test_glasses_of_the_target_stay_whole(scene: Make, swap: Swap) -> None:
    bare, target, source = scene(), scene(drawn.with_glasses), scene(name="t1", index=4)
    rims = drawn.frame_mask(bare.image, bare.mesh)
    after = swap(source, target)
    assert difference(after, target.image, rims) < 2.5
    assert difference(swap(source, bare), bare.image, rims) > 8, "without glasses this place is painted"
    mouth = drawn.hand_mask(bare.image, bare.mesh)
    assert difference(after, target.image, mouth) > 8, "the rest of the face is swapped"


def test_glasses_of_the_source_stay_at_home(scene: Make, swap: Swap, prepare: Prepare) -> None:
    source, target = scene(drawn.with_glasses), scene(name="t1", index=4)
    identity = prepare(source)
    assert "source_glasses" in identity.warnings
    after, rims = swap(source, target), drawn.frame_mask(target.image, target.mesh)
    assert difference(after, target.image, rims) < 1, "neither its frame nor the eyes behind it are painted"
    assert difference(swap(scene(), target), target.image, rims) > 8


def test_a_hand_over_the_mouth_stays(scene: Make, swap: Swap) -> None:
    """It has the colour of skin: only that no lips are seen tells it."""
    bare, target, source = scene(), scene(drawn.with_hand), scene(name="t1", index=4)
    hand = drawn.hand_mask(bare.image, bare.mesh)
    after = swap(source, target)
    assert difference(after, target.image, hand) < 2.0
    x, y = target.mesh[[107, 336], :2].mean(0).round().astype(int)
    brows = np.zeros(hand.shape, bool)
    brows[y - 12 : y + 12, x - 30 : x + 30] = True
    assert difference(after, target.image, brows) > 5, "the rest of the face is swapped"


def test_a_covered_mouth_of_the_source_is_not_taken_for_one(scene: Make, swap: Swap, prepare: Prepare) -> None:
    source, target = scene(drawn.with_hand), scene(name="t1", index=4)
    assert "source_mouth_covered" in prepare(source).warnings
    lips = drawn.hand_mask(target.image, target.mesh)
    assert difference(swap(source, target), target.image, lips) < 2.5


@pytest.mark.parametrize(("name", "index"), [("astronaut", 0), ("hanks", 0), *(("t1", k) for k in range(6))])
@pytest.mark.parametrize("dark", [None, 0.35])
def test_a_bare_face_is_never_covered(scene: Make, prepare: Prepare, name: str, index: int, dark: float | None) -> None:
    light = None if dark is None else lambda image, mesh: drawn.with_side_light(image, mesh, dark)
    identity = prepare(scene(light, name, index))
    assert not identity.fitness.glasses
    assert not identity.fitness.mouth_covered


def test_soft_side_light_of_the_source_stays_at_home(scene: Make, swap: Swap, prepare: Prepare) -> None:
    """What it does to the result is a small part of what it did to the source."""
    bare, target = scene(), scene(name="t1", index=1)
    lit = Scene(drawn.with_side_light(bare.image, bare.mesh, 0.35), bare.mesh)
    both = [
        difference(lit.image, bare.image, _middle(bare)),
        difference(swap(lit, target), swap(bare, target), _middle(target)),
    ]
    assert both[1] < 0.15 * both[0]
    assert "source_hard_light" not in prepare(lit).warnings


_AROUND_FEATURES = [
    *(57, 287, 43, 273, 202, 422, 204, 424, 18, 200, 106, 335, 182, 406),
    *(129, 358, 49, 279, 209, 429, 126, 355, 230, 450, 119, 348),
]
_ABOVE_LIP = [164, 167, 393, 165, 391, 186, 410, 92, 322, 0]


def _darkened(after: Image, target: Scene, vertices: list[int]) -> float:
    """Levels by which the places under the vertices are darker than in the target, on average."""
    sigma = float(np.ptp(target.mesh[:, 0])) * 0.02
    was, now = (cv2.GaussianBlur(image, (0, 0), sigma).astype(float).mean(2) for image in (target.image, after))
    x, y = target.mesh[vertices, :2].round().astype(int).T
    return float(np.clip(was - now, 0, None)[y, x].mean())


def _middle(one: Scene) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    inside = np.zeros(one.image.shape[:2], bool)
    (x0, y0), (x1, y1) = np.quantile(one.mesh[:, :2], [0.2, 0.8], axis=0).astype(int)
    inside[y0:y1, x0:x1] = True
    return inside


def test_what_is_seen_beforehand_is_what_the_identity_carries(
    scene: Make, prepare: Prepare, swapper: MeshSwapper
) -> None:
    for change in (None, drawn.with_glasses, drawn.with_hand, drawn.with_shadows):
        one = scene(change)
        assert swapper.examine(SourceFace(one.image, one.mesh)) == prepare(one).warnings


@pytest.mark.parametrize("name", ["astronaut", "hanks"])
def test_dark_frames_are_found_in_any_light(scene: Make, prepare: Prepare, name: str) -> None:
    def lit(image: Image, mesh: Floats) -> Image:
        return drawn.with_side_light(drawn.with_glasses(image, mesh), mesh, 0.35)

    assert "source_glasses" in prepare(scene(drawn.with_glasses, name)).warnings
    assert "source_glasses" in prepare(scene(lit, name)).warnings


def test_a_frown_is_no_frame(scene: Make, prepare: Prepare) -> None:
    """Two creases upright between the brows, and the shade of the brows."""
    assert "source_glasses" not in prepare(scene(drawn.with_frown)).warnings


def test_hard_shadows_of_the_source_are_a_warning(scene: Make, prepare: Prepare) -> None:
    assert "source_hard_light" in prepare(scene(drawn.with_shadows)).warnings
    assert "source_hard_light" in prepare(scene(name="hanks")).warnings
    assert "source_hard_light" not in prepare(scene()).warnings


def test_shadows_on_both_sides_are_told_from_a_shaded_side(scene: Make, prepare: Prepare) -> None:
    """Of a shaded side the lit one takes the place; of bars no side is free."""
    assert "source_shadowed" in prepare(scene(drawn.with_shadows)).warnings
    for one in (scene(), scene(name="hanks"), scene(drawn.with_shaded_side)):
        assert "source_shadowed" not in prepare(one).warnings


@pytest.fixture
def targets(scene: Make) -> list[Scene]:
    return [scene(name="t1", index=index) for index in (0, 1, 2, 4, 5)]


def test_the_lit_side_stands_for_a_shaded_one(scene: Make, swap: Swap, targets: list[Scene]) -> None:
    """Which part of the shade on the source is left in the result. The study leaves 0.27, this 0.21."""
    bare = scene()
    shaded = Scene(drawn.with_shaded_side(bare.image, bare.mesh), bare.mesh)
    source = difference(shaded.image, bare.image, _middle(bare))
    left = [difference(swap(shaded, one), swap(bare, one), _middle(one)) / source for one in targets]
    assert mean(left) < 0.24


def test_hard_side_light_leaves_less_dirt(scene: Make, swap: Swap, targets: list[Scene]) -> None:
    """Levels by which cheeks, chin and the sides of the nose are darkened by a studio portrait. The study: 13.0, this
    11.2; the worst of its dark patches, beside nose and mouth, are gone."""
    assert mean(_darkened(swap(scene(name="hanks"), one), one, _AROUND_FEATURES) for one in targets) < 0.9 * 13.0


def test_a_laugh_of_the_source_is_a_warning(scene: Make, prepare: Prepare) -> None:
    assert [k for k in range(6) if "source_laughing" in prepare(scene(name="t1", index=k)).warnings] == [3]


def test_a_laugh_is_less_of_a_moustache(scene: Make, swap: Swap, targets: list[Scene]) -> None:
    """Levels by which the skin between nose and lips is darkened. The study: 19.6, this 16.6."""
    laugh = scene(name="t1", index=3)
    assert mean(_darkened(swap(laugh, one), one, _ABOVE_LIP) for one in targets) < 0.9 * 19.6


def test_teeth_of_the_source_are_not_painted_around_other_lips(scene: Make, swap: Swap, targets: list[Scene]) -> None:
    """Levels by which the lips' weakest channel gets lighter. The study: 57, this 0: the target's lips stay."""
    toothy, left = scene(drawn.with_teeth), []
    for one in targets:
        lips = drawn.lips_mask(one.image, one.mesh)
        lighter = swap(toothy, one).min(axis=2).astype(int) - one.image.min(axis=2)
        left.append(float(np.clip(lighter, 0, None)[lips].mean()))
    assert mean(left) < 5


def test_a_laugh_stays_on_a_face_that_laughs(scene: Make, swap: Swap) -> None:
    """On a mouth as open nothing is taken back: its lips are the source's."""
    laugh, target = scene(name="t1", index=3), scene()
    assert difference(swap(laugh, target), target.image, drawn.lips_mask(target.image, target.mesh)) > 8


def test_glasses_and_a_covered_mouth_leave_nothing(scene: Make, prepare: Prepare) -> None:
    def both(image: Image, mesh: Floats) -> Image:
        return drawn.with_hand(drawn.with_glasses(image, mesh), mesh)

    assert "source_hidden" in prepare(scene(both)).warnings
    for change in (None, drawn.with_glasses, drawn.with_hand, drawn.with_shadows):
        assert "source_hidden" not in prepare(scene(change)).warnings


def test_a_fringe_of_the_source_is_no_second_pair_of_brows(scene: Make, swap: Swap) -> None:
    """The astronaut's forehead is cut by hair: above the brows the target's own skin shows, without a dark line."""
    for index in (1, 4):
        target = scene(name="t1", index=index)
        after = swap(scene(), target)
        brow, top = target.mesh[[107, 336], :2].mean(0), target.mesh[10, :2]
        line = np.linspace(brow + 0.3 * (top - brow), brow + 0.75 * (top - brow), 24).round().astype(int)
        change = after[line[:, 1], line[:, 0]].astype(int).mean(1) - target.image[line[:, 1], line[:, 0]].mean(1)
        assert change.min() > -22, index
