"""The embedded swapper: what changes, what does not, always the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cv2
import numpy as np
import pytest

from shared.vision.protocols import Floats, Image, SourceFace, SwapOptions, Target
from shared.vision.swapper.mesh import MeshSwapper
from shared.vision.swapper.region import Box
from shared.vision.swapper.source import MeshIdentity

from .conftest import Portrait

Swap = Callable[..., Image]


@dataclass(frozen=True)
class Subject:
    image: Image
    mesh: Floats
    identity: MeshIdentity


@pytest.fixture(scope="module")
def subject(portrait: Callable[[str], Portrait], swapper: MeshSwapper) -> Callable[..., Subject]:
    known: dict[tuple[str, int], Subject] = {}

    def make(name: str, index: int = 0) -> Subject:
        if (name, index) not in known:
            picture = portrait(name)
            mesh = picture.faces[index].mesh
            known[name, index] = Subject(picture.image, mesh, swapper.prepare([SourceFace(picture.image, mesh)]))
        return known[name, index]

    return make


@pytest.fixture(scope="module")
def swap(swapper: MeshSwapper) -> Swap:
    def run(image: Image, mesh: Floats, identity: MeshIdentity, **options: object) -> Image:
        frame = image.copy()
        swapper.swap(frame, [Target(mesh, identity)], SwapOptions(**options))  # type: ignore[arg-type]
        return frame

    return run


def change(before: Image, after: Image, mesh: Floats) -> float:
    """Mean absolute change inside the mesh's box, in grey levels."""
    box = Box.around(mesh, before.shape)
    return float(np.abs(box.of(after).astype(int) - box.of(before)).mean())


def resized(subject: Subject, scale: float, top_left: tuple[int, int] = (0, 0)) -> tuple[Image, Floats]:
    x, y = top_left
    part = subject.image[y:, x:]
    image = cv2.resize(part, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return image, ((subject.mesh - np.float32([x, y, 0])) * np.float32(scale)).astype(np.float32)


SUBJECTS = [("astronaut", 0), ("t1", 0), ("t1", 2), ("t1", 5)]


@pytest.mark.parametrize(("name", "index"), SUBJECTS)
def test_a_face_onto_itself_stays_itself(subject: Callable[..., Subject], swap: Swap, name: str, index: int) -> None:
    """engine.md section 3: 1.4-3.3 grey levels on average; the frame's own grain, kept since, makes it less."""
    one = subject(name, index)
    assert 0.5 < change(one.image, swap(one.image, one.mesh, one.identity), one.mesh) < 3.3


def test_another_face_changes_much_more(subject: Callable[..., Subject], swap: Swap) -> None:
    target, source = subject("astronaut"), subject("t1", 5)
    itself = change(target.image, swap(target.image, target.mesh, target.identity), target.mesh)
    other = change(target.image, swap(target.image, target.mesh, source.identity), target.mesh)
    assert other > 3 * itself


def test_features_come_from_the_source(subject: Callable[..., Subject], swap: Swap, swapper: MeshSwapper) -> None:
    """What the swapper itself reads out of the result correlates with the source more than with the target."""
    target = subject("astronaut")
    for index in (0, 1, 3, 5):
        source = subject("t1", index)
        result = swapper.prepare(
            [SourceFace(swap(target.image, target.mesh, source.identity, eyes="source"), target.mesh)]
        )
        assert likeness(result, source.identity) > likeness(result, target.identity) + 0.1


def likeness(a: MeshIdentity, b: MeshIdentity) -> float:
    size = min(a.size, b.size)
    x, y = (cv2.resize(i.detail[..., 0], (size, size), interpolation=cv2.INTER_AREA) for i in (a, b))
    middle = slice(int(size * 0.3), int(size * 0.7))
    return float(np.corrcoef(x[middle, middle].ravel(), y[middle, middle].ravel())[0, 1])


@pytest.mark.parametrize("options", [{}, {"eyes": "source"}, {"shape": 0.0}, {"shape": 1.0}])
def test_no_pixel_outside_the_region_changes(
    subject: Callable[..., Subject], swap: Swap, options: dict[str, object]
) -> None:
    for name, index, source in (("astronaut", 0, ("t1", 5)), ("t1", 4, ("astronaut", 0))):
        target = subject(name, index)
        after = swap(target.image, target.mesh, subject(*source).identity, **options)
        outside = np.ones(target.image.shape[:2], bool)
        box = Box.around(target.mesh, target.image.shape)
        outside[box.y0 : box.y1, box.x0 : box.x1] = False
        assert np.array_equal(after[outside], target.image[outside])
        assert not np.array_equal(after, target.image)


def test_face_02_the_largest_alone_changes(
    portrait: Callable[[str], Portrait], subject: Callable[..., Subject], swap: Swap
) -> None:
    picture = portrait("three_faces_small_mid_large.jpg")
    after = swap(picture.image, picture.faces[2].mesh, subject("t1", 5).identity)
    ys, xs = np.nonzero((after != picture.image).any(2))
    assert 400 <= xs.min() < xs.max() < 608
    assert 20 <= ys.min() < ys.max() < 276


def test_the_targets_eyes_stay_unless_the_sources_are_asked_for(subject: Callable[..., Subject], swap: Swap) -> None:
    target, source = subject("astronaut"), subject("t1", 5)
    x, y = target.mesh[[159, 145], :2].mean(0).round().astype(int)
    eye = np.s_[y - 1 : y + 2, x - 1 : x + 2]
    kept = swap(target.image, target.mesh, source.identity, shape=0.0)
    painted = swap(target.image, target.mesh, source.identity, shape=0.0, eyes="source")
    assert np.abs(kept[eye].astype(int) - target.image[eye]).max() <= 6
    assert np.abs(painted[eye].astype(int) - target.image[eye]).mean() > 20


def test_shape_moves_features_within_the_outline(subject: Callable[..., Subject], swap: Swap) -> None:
    target, source = subject("astronaut"), subject("t1", 2)
    still, moved = (swap(target.image, target.mesh, source.identity, shape=s) for s in (0.0, 1.0))
    assert not np.array_equal(still, moved)


def test_repeatable_to_the_bit(subject: Callable[..., Subject], swap: Swap, swapper: MeshSwapper) -> None:
    target, source = subject("t1", 0), subject("astronaut")
    again = swapper.prepare([SourceFace(source.image, source.mesh)])
    assert np.array_equal(again.detail, source.identity.detail)
    assert np.array_equal(again.clear, source.identity.clear)
    first = swap(target.image, target.mesh, source.identity)
    assert np.array_equal(first, swap(target.image, target.mesh, again))


def test_threads_do_not_disturb_one_another(subject: Callable[..., Subject], swap: Swap, swapper: MeshSwapper) -> None:
    target, faces = subject("astronaut"), [subject("t1", index) for index in range(6)]
    alone = [swap(target.image, target.mesh, face.identity) for face in faces]

    def work(index: int) -> bool:
        face = faces[index % 6]
        identity = swapper.prepare([SourceFace(face.image, face.mesh)])
        return np.array_equal(swap(target.image, target.mesh, identity), alone[index % 6])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(12)))


def test_inputs_are_left_alone(subject: Callable[..., Subject], swapper: MeshSwapper) -> None:
    target, source = subject("astronaut"), subject("t1", 5)
    mesh = target.mesh.copy()
    mesh.setflags(write=False)
    detail = source.identity.detail.copy()
    frame = target.image.copy()
    swapper.swap(frame, [Target(mesh, source.identity)], SwapOptions())
    assert np.array_equal(detail, source.identity.detail)
    assert np.array_equal(mesh, target.mesh)


@pytest.mark.parametrize("name", ["face_cut_left_border.jpg", "face_cut_top_border.jpg"])
def test_face_05_a_face_cut_by_the_border(
    portrait: Callable[[str], Portrait], subject: Callable[..., Subject], swap: Swap, name: str
) -> None:
    picture = portrait(name)
    for face in picture.faces:
        after = swap(picture.image, face.mesh, subject("t1", 5).identity)
        assert after.shape == picture.image.shape
        assert not np.array_equal(after, picture.image)
        rest = np.s_[:, 120:] if "left" in name else np.s_[160:]
        assert np.array_equal(after[rest], picture.image[rest])


@pytest.mark.parametrize(
    ("dx", "dy"), [(-200, 0), (0, -90), (-200, -90), (290, 0), (0, 400), (-180, 60), (40, -60), (-225, -90)]
)
def test_face_05_every_edge_and_corner(subject: Callable[..., Subject], swap: Swap, dx: int, dy: int) -> None:
    target, source = subject("astronaut"), subject("t1", 5)
    moved = cv2.warpAffine(
        target.image, np.float64([[1, 0, dx], [0, 1, dy]]), (512, 512), borderMode=cv2.BORDER_REPLICATE
    )
    mesh = target.mesh + np.float32([dx, dy, 0])
    after = swap(moved, mesh, source.identity)
    box = Box.around(mesh, moved.shape)
    changed = np.nonzero((after != moved).any(2))
    assert changed[0].size
    assert box.x0 <= changed[1].min() <= changed[1].max() < box.x1
    assert box.y0 <= changed[0].min() <= changed[0].max() < box.y1


@pytest.mark.parametrize("offset", [(-900, 0), (0, 900), (600, 0), (-900, -900), (5000, 5000), (-274, 0), (0, -200)])
def test_a_face_outside_the_frame_changes_nothing(
    subject: Callable[..., Subject], swap: Swap, offset: tuple[int, int]
) -> None:
    target = subject("astronaut")
    after = swap(target.image, target.mesh + np.float32([*offset, 0]), subject("t1", 5).identity)
    assert np.array_equal(after, target.image)


@pytest.mark.parametrize("scale", [0.02, 0.08, 0.12, 0.2, 0.4, 3.0, 6.1])
def test_any_size_of_face(subject: Callable[..., Subject], swap: Swap, scale: float) -> None:
    target = subject("astronaut")
    image, mesh = resized(target, scale, (120, 0))
    after = swap(image, mesh, subject("t1", 5).identity)
    assert after.shape == image.shape
    assert np.array_equal(after, image) == (scale == 0.02)


def test_a_large_face_keeps_the_frame_outside_the_painted_part(subject: Callable[..., Subject], swap: Swap) -> None:
    """Above the working size only the difference is enlarged: noise in the corners of the region survives."""
    image, mesh = resized(subject("astronaut"), 7.0, (170, 40))
    image = np.ascontiguousarray(image[:1100, :900])
    noise = np.random.default_rng(0).integers(-9, 10, image.shape)
    image = np.clip(image + noise, 0, 255).astype(np.uint8)
    after = swap(image, mesh, subject("t1", 5).identity)
    box = Box.around(mesh, image.shape)
    assert np.array_equal(box.of(after)[:20, :20], box.of(image)[:20, :20])
    assert not np.array_equal(after, image)


def test_a_source_cut_by_the_border_is_prepared(
    portrait: Callable[[str], Portrait], subject: Callable[..., Subject], swap: Swap, swapper: MeshSwapper
) -> None:
    cut = portrait("face_cut_top_border.jpg")
    identity = swapper.prepare([SourceFace(cut.image, cut.faces[0].mesh)])
    target = subject("t1", 5)
    after = swap(target.image, target.mesh, identity)
    assert np.isfinite(identity.detail).all()
    assert not np.array_equal(after, target.image)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_flat_pictures_give_finite_results(
    subject: Callable[..., Subject], swap: Swap, swapper: MeshSwapper, level: int
) -> None:
    target = subject("astronaut")
    flat = np.full_like(target.image, level)
    identity = swapper.prepare([SourceFace(flat, target.mesh)])
    assert np.isfinite(identity.detail).all()
    for picture in (flat, target.image):
        swap(picture, target.mesh, identity)
    swap(flat, target.mesh, target.identity)


def test_a_grey_target_stays_grey(subject: Callable[..., Subject], swap: Swap) -> None:
    target = subject("t1", 2)
    grey = cv2.cvtColor(cv2.cvtColor(target.image, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    after = swap(grey, target.mesh, subject("t1", 5).identity).astype(int)
    assert np.ptp(after, axis=2).max() <= 2


def test_light_of_the_target_stays(subject: Callable[..., Subject], swap: Swap) -> None:
    """A strong side light on the target is on the swapped face too: left and right keep their ratio."""
    target = subject("astronaut")
    box = Box.around(target.mesh, target.image.shape)
    x = (np.arange(target.image.shape[1]) - box.x0) / box.width
    ramp = (0.5 + 0.7 * np.clip(x, 0, 1))[None, :, None]
    lit = np.clip(target.image * ramp, 0, 255).astype(np.uint8)
    after = swap(lit, target.mesh, subject("t1", 5).identity)
    cheeks = [target.mesh[[117, 50], :2].mean(0), target.mesh[[346, 280], :2].mean(0)]
    ratio = [
        np.divide(*(float(im[int(y) - 4 : int(y) + 4, int(x) - 4 : int(x) + 4].mean()) for x, y in cheeks))
        for im in (lit, after)
    ]
    assert ratio[1] == pytest.approx(ratio[0], rel=0.12)


def test_grain_of_the_frame_does_not_stop_at_the_face(subject: Callable[..., Subject], swap: Swap) -> None:
    target = subject("astronaut")
    noise = np.random.default_rng(3).normal(0, 4, target.image.shape[:2])[..., None]
    grainy = np.clip(target.image + noise, 0, 255).astype(np.uint8)
    smooth = cv2.GaussianBlur(target.image, (0, 0), 1.5)
    x, y = target.mesh[[117, 50, 101], :2].mean(0).round().astype(int)
    cheek = np.s_[y - 6 : y + 6, x - 6 : x + 6]

    def fine(frame: Image) -> float:
        grey = swap(frame, target.mesh, subject("t1", 5).identity)[cheek].mean(2)
        return float((grey - cv2.GaussianBlur(grey, (0, 0), 1.0)).std())

    assert fine(grainy) > max(2.0, 1.7 * fine(smooth))


def test_hard_light_is_a_warning(subject: Callable[..., Subject]) -> None:
    assert "source_hard_light" in subject("hanks").identity.warnings
    assert "source_hard_light" not in subject("astronaut").identity.warnings


def test_warm_needs_no_model(swapper: MeshSwapper) -> None:
    swapper.warm()
