"""2dfan4 on a stand-in graph: the crop, the way back, the score; and what becomes of its points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.errors import InvalidCloudEventError
from shared.models import catalog
from shared.vision import measured
from shared.vision.geometry import alignment, five_of_68, five_points, pose_of
from shared.vision.landmarker import fan
from shared.vision.landmarker.fan import Fan
from shared.vision.measured import Measured
from shared.vision.protocols import Floats, FoundFace, Image, ModelAssets, SourceFace, SparseLandmarks
from shared.vision.runtime import Runtime
from tests.standins import detectors

from .conftest import Portrait

NUMBERS = catalog.default().model("2dfan4").parameters
GRID = np.stack([np.linspace(8, 56, 68), np.linspace(56, 8, 68)], axis=1).astype(np.float32)


def made(folder: Path, runtime: Runtime, peak: float = 0.63) -> Fan:
    return Fan(ModelAssets("2dfan4", {"model": detectors.fan(folder, GRID, peak)}, NUMBERS), runtime)


def upright(face: FoundFace, degrees: float) -> FoundFace:
    """The same face with its mesh turned in the picture."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    mesh = face.mesh.copy()
    centre = mesh[:, :2].mean(axis=0)
    mesh[:, :2] = (mesh[:, :2] - centre) @ np.float32([[c, s], [-s, c]]) + centre
    return replace(face, mesh=mesh)


def test_points_come_back_from_a_crop_whose_face_is_195_pixels(
    tmp_path: Path, runtime: Runtime, portrait: Callable[[str], Portrait]
) -> None:
    """A grid of 64 is 256 pixels of the crop, 4 to 1; the longer side of the box is 195 of them."""
    astronaut = portrait("astronaut")
    face = astronaut.faces[0]
    level = upright(face, -pose_of(face.mesh).roll)
    refiner = made(tmp_path, runtime)
    refiner.warm()
    (found,) = refiner.refine(astronaut.image, [level])
    x0, y0, x1, y1 = face.box
    scale = max(x1 - x0, y1 - y0) / 195
    expected = (GRID * 4 - 128) * scale + [(x0 + x1) / 2, (y0 + y1) / 2]
    assert np.allclose(found.points, expected, atol=0.1)
    assert found.score == pytest.approx(0.63 / 0.9)


def test_a_turned_face_is_looked_at_upright(
    tmp_path: Path, runtime: Runtime, portrait: Callable[[str], Portrait]
) -> None:
    astronaut = portrait("astronaut")
    face = astronaut.faces[0]
    level, turned = (upright(face, roll - pose_of(face.mesh).roll) for roll in (0, 90))
    first, second = made(tmp_path, runtime).refine(astronaut.image, [level, turned])
    centre = (face.box[:2] + face.box[2:]) / 2
    quarter = (first.points - centre)[:, ::-1] * [-1, 1]
    assert np.allclose(second.points - centre, quarter, atol=0.2)


def test_all_faces_run_together_and_none_is_no_run(
    tmp_path: Path, runtime: Runtime, portrait: Callable[[str], Portrait]
) -> None:
    group = portrait("t1")
    refiner = made(tmp_path, runtime, peak=2.0)
    together = refiner.refine(group.image, group.faces)
    assert [found.score for found in together] == [1.0] * 6
    for face, found in zip(group.faces, together, strict=True):
        (alone,) = refiner.refine(group.image, [face])
        assert np.array_equal(alone.points, found.points)
    assert refiner.refine(group.image, []) == []


def test_the_network_sees_rgb_over_255(tmp_path: Path, runtime: Runtime) -> None:
    red = np.zeros((1, 256, 256, 3), np.uint8)
    red[..., 2] = 51
    session = runtime.session(detectors.fan(tmp_path, GRID, 1.0))
    refiner = made(tmp_path, runtime)
    seen: list[Floats] = []

    @dataclass
    class Spy:
        def run(self, feeds: Mapping[str, Floats]) -> list[Floats]:
            seen.append(feeds["input"])
            return session.run(feeds)

    refiner._batches = Spy()  # type: ignore[assignment]
    refiner._measure(red)
    assert seen[0].shape == (1, 3, 256, 256)
    assert [float(plane.mean()) for plane in seen[0][0]] == pytest.approx([0.2, 0, 0])


def test_dark_crops_are_spread_out_and_others_left_alone(portrait: Callable[[str], Portrait]) -> None:
    crop = cv2.resize(portrait("astronaut").image, (256, 256))
    assert fan._lit(crop) is crop
    dark = (crop * 0.08).astype(np.uint8)
    lit = fan._lit(dark)
    lab = [cv2.cvtColor(picture, cv2.COLOR_BGR2LAB)[..., 0] for picture in (dark, lit)]
    assert lab[0].mean() < 30
    assert lab[1].std() > 1.3 * lab[0].std()


def test_five_of_68_by_hand() -> None:
    points = np.arange(136, dtype=np.float32).reshape(68, 2)
    assert five_of_68(points).tolist() == [[77, 78], [89, 90], [60, 61], [96, 97], [108, 109]]


@dataclass
class Told:
    """A refiner that says what it is told to."""

    points: Floats
    scores: list[float]

    def warm(self) -> None: ...

    def refine(self, image: Image, faces: Sequence[FoundFace]) -> list[SparseLandmarks]:
        return [SparseLandmarks(self.points + n, score) for n, score in enumerate(self.scores)]


def test_sure_points_replace_the_mesh_s_and_unsure_ones_do_not(portrait: Callable[[str], Portrait]) -> None:
    group = portrait("t1")
    told = Told(np.arange(136, dtype=np.float32).reshape(68, 2), [0.9, 0.49, 0.5])
    found = measured.measure(group.image, group.faces[:3], told)
    assert found.five(1) is None
    for index in (0, 2):
        points = found.five(index)
        assert points is not None
        assert points.tolist() == (five_of_68(told.points) + index).tolist()
    plain = measured.measure(group.image, group.faces, None)
    assert [plain.five(index) for index in range(len(plain))] == [None] * 6
    mesh = group.faces[0].mesh
    assert np.array_equal(alignment(SourceFace(group.image, mesh)), five_points(mesh))
    finer = found.five(0)
    assert alignment(SourceFace(group.image, mesh, finer)) is finer


def some(count: int, seed: int) -> Measured:
    random = np.random.default_rng(seed)
    points = random.standard_normal((count, 5, 2)).astype(np.float32)
    points[0] = np.nan
    return Measured(random.standard_normal((count, 468, 3)).astype(np.float32), points)


def test_the_file_of_landmarks_is_read_as_it_was_written() -> None:
    sources, targets = some(2, 1), some(3, 2)
    data = measured.write(sources, 1, targets)
    assert data == measured.write(sources, 1, targets)
    for before, after in zip((sources, targets), measured.read(data), strict=True):
        assert np.array_equal(before.meshes, after.meshes)
        assert np.array_equal(before.points, after.points, equal_nan=True)
    both = measured.joined([sources, targets])
    assert np.array_equal(both.meshes[2:], targets.meshes)


def test_a_file_with_the_first_names_alone_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "old.npz"
    sources, targets = some(1, 1), some(3, 2)
    np.savez(path, source=sources.meshes[0], target=targets.meshes)
    source, target = measured.read(path.read_bytes())
    assert np.array_equal(source.meshes, sources.meshes)
    assert np.array_equal(target.meshes, targets.meshes)
    assert [target.five(index) for index in range(3)] == [None] * 3


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY"])
def test_what_is_no_file_of_landmarks(data: bytes) -> None:
    with pytest.raises(InvalidCloudEventError):
        measured.read(data)
    empty = measured.write(some(1, 1), 0, some(1, 1))[:200]
    with pytest.raises(InvalidCloudEventError):
        measured.read(empty)
