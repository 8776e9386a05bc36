"""Swaps in a video: faded, with remembered light, in parts of a frame, several frames in one run."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from shared.imaging.canvas import Still
from shared.imaging.geometry import Doubles
from shared.vision.protocols import Image, Memory, SourceFace, SwapOptions, Target
from shared.vision.runtime import Runtime
from shared.vision.swapper.mesh import MeshSwapper
from shared.vision.swapper.source import MeshIdentity
from tests.standins.faces import face, noise, row
from tests.standins.world import RecordingRuntime, StandIns

from ..conftest import Portrait


@pytest.fixture(scope="module")
def standins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    return StandIns(tmp_path_factory.mktemp("standins"))


@pytest.fixture(scope="module")
def group(portrait: Callable[[str], Portrait]) -> Portrait:
    return portrait("t1")


@pytest.fixture(scope="module")
def identity(group: Portrait, swapper: MeshSwapper) -> MeshIdentity:
    return swapper.prepare([SourceFace(group.image, group.faces[0].mesh)])


def difference(a: Image, b: Image) -> Doubles:
    return np.asarray(np.abs(a.astype(float) - b), np.float64)


def test_strength_fades_the_embedded_swap(group: Portrait, identity: MeshIdentity, swapper: MeshSwapper) -> None:
    changes = []
    for strength in (0.0, 0.25, 0.5, 1.0):
        frame = group.image.copy()
        swapper.swap(frame, [Target(group.faces[1].mesh, identity, strength=strength)], SwapOptions())
        changes.append(float(difference(frame, group.image).sum()))
    assert changes[0] == 0
    assert (np.diff(changes) > 0).all()
    assert changes[1] < 0.45 * changes[3]


@pytest.mark.parametrize("name", ["inswapper", "blendswap"])
def test_strength_fades_a_learned_swap(name: str, standins: StandIns, runtime: Runtime) -> None:
    swapper = standins.swapper(name, runtime)
    results = []
    for strength in (0.0, 0.5, 1.0):
        frame = noise()
        swapper.swap(frame, [Target(face(), row(swapper), strength=strength)], SwapOptions())
        results.append(frame)
    assert np.array_equal(results[0], noise())
    middle = (results[0].astype(float) + results[2]) / 2
    assert difference(results[1], middle).max() <= 1


@pytest.mark.parametrize("count", [1, 3])
def test_learned_swappers_take_the_faces_of_several_frames_in_one_run(count: int, standins: StandIns) -> None:
    runtime = RecordingRuntime()
    swapper = standins.swapper("inswapper", runtime)
    frames = [noise(seed=k) for k in range(count)]
    targets = [[Target(face(120, 200), row(swapper)), Target(face(280, 200), row(swapper, 1))] for _ in frames]
    alone = [frame.copy() for frame in frames]
    swapper.swap_many([Still(frame) for frame in frames], targets, SwapOptions())
    assert len(runtime.sessions["inswapper"].fed) == 1
    for frame, own in zip(alone, targets, strict=True):
        swapper.swap(frame, own, SwapOptions())
    assert all(difference(a, b).max() <= 1 for a, b in zip(frames, alone, strict=True))


@pytest.mark.parametrize("index", [1, 4])
def test_a_part_of_the_frame_is_enough_for_the_embedded_swapper(
    group: Portrait, identity: MeshIdentity, swapper: MeshSwapper, index: int
) -> None:
    target = Target(group.faces[index].mesh, identity)
    whole = group.image.copy()
    swapper.swap(whole, [target], SwapOptions())
    part = group.image.copy()
    swapper.swap_many([Still(part)], [[target]], SwapOptions())
    assert difference(part, whole).max() <= 2  # float32 positions are finer near the corner
    assert difference(part, whole).mean() < 1e-3


def test_remembered_light_is_steadier_and_still_follows_a_lamp(
    group: Portrait, identity: MeshIdentity, swapper: MeshSwapper
) -> None:
    """Grain of 6 grey levels; at frame 12 the light goes down by half."""
    mesh, random = group.faces[1].mesh, np.random.default_rng(5)
    x0, y0, x1, y1 = np.array([*mesh[:, :2].min(0), *mesh[:, :2].max(0)]).astype(int)
    light = [1.0] * 12 + [0.5] * 8
    frames = [np.clip(group.image * k + random.normal(0, 6, group.image.shape), 0, 255).astype(np.uint8) for k in light]

    def faces(memory: Memory | None) -> Doubles:
        results = [frame.copy() for frame in frames]
        targets = [[Target(mesh, identity, memory=memory)] for _ in frames]
        swapper.swap_many([Still(result) for result in results], targets, SwapOptions())
        return np.stack([r[y0:y1, x0:x1] for r in results]).astype(np.float64)

    plain, steady = faces(None), faces(Memory())
    blurred = [clip[4:12].reshape(8, -1, 3).mean(1) for clip in (plain, steady)]
    assert blurred[1].std(0).mean() < blurred[0].std(0).mean()
    assert abs(steady[13].mean() - plain[13].mean()) < 0.03 * plain[13].mean()


def test_a_face_without_strength_warms_the_memory(
    group: Portrait, identity: MeshIdentity, swapper: MeshSwapper
) -> None:
    memory, frame = Memory(), group.image.copy()
    swapper.swap(frame, [Target(group.faces[1].mesh, identity, strength=0.0, memory=memory)], SwapOptions())
    assert np.array_equal(frame, group.image)
    assert memory.state is not None


def test_a_memory_of_another_source_is_not_used(group: Portrait, swapper: MeshSwapper) -> None:
    first, second = (swapper.prepare([SourceFace(group.image, group.faces[k].mesh)]) for k in (0, 2))
    memory = Memory()

    def swapped(identity: MeshIdentity, kept: Memory) -> Image:
        frame = group.image.copy()
        swapper.swap(frame, [Target(group.faces[1].mesh, identity, memory=kept)], SwapOptions())
        return frame

    swapped(first, memory)
    assert np.array_equal(swapped(second, memory), swapped(second, Memory()))


def test_a_small_face_gets_a_texture_of_its_size(group: Portrait, swapper: MeshSwapper) -> None:
    """Of a finer one texels would be skipped, others in each frame."""
    large = cv2.resize(group.image, None, fx=5, fy=5, interpolation=cv2.INTER_CUBIC)
    fine = swapper.prepare([SourceFace(np.asarray(large, np.uint8), group.faces[0].mesh * np.float32(5))])
    assert fine.size == 512
    mesh = group.faces[1].mesh
    assert np.ptp(mesh[:, :2], axis=0).max() < 110
    targets = [Target(mesh, fine), Target(mesh, fine, memory=Memory())]
    single, clip = group.image.copy(), group.image.copy()
    for frame, target in zip((single, clip), targets, strict=True):
        swapper.swap(frame, [target], SwapOptions())
    change = float(difference(single, group.image).mean())
    assert 0 < difference(single, clip).mean() < 0.4 * change  # the same face, and not the same pixels
