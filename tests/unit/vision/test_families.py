"""Every learned swapper family by numbers computed by hand: what reaches its network, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared.vision.geometry import five_points, pose_of
from shared.vision.protocols import Floats, ModelAssets, SourceFace, SwapOptions, Target
from shared.vision.runtime import Runtime
from shared.vision.swapper.inswapper import InSwapper, latent
from tests.standins.faces import face, flat, noise, row
from tests.standins.swappers import FAMILIES
from tests.standins.world import FixedEmbedder, RecordingRuntime, StandIns
from tests.unit.vision.conftest import Portrait

EVERY = sorted(FAMILIES)
EMBEDDING = [name for name in EVERY if len(FAMILIES[name].source) == 1]


@pytest.fixture(scope="module")
def standins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    return StandIns(tmp_path_factory.mktemp("standins"))


# what reaches the network, by hand

LEVELS = {
    # level / 255: 200, 20, 10
    "inswapper": (0.784314, 0.078431, 0.039216),
    "inswapper_fp16": (0.784314, 0.078431, 0.039216),
    "simswap_512": (0.784314, 0.078431, 0.039216),
    "alphaface": (0.784314, 0.078431, 0.039216),
    "blendswap": (0.784314, 0.078431, 0.039216),
    # level / 127.5 - 1
    "ghost": (0.568627, -0.843137, -0.921569),
    "hififace": (0.568627, -0.843137, -0.921569),
    "hyperswap": (0.568627, -0.843137, -0.921569),
    "uniface": (0.568627, -0.843137, -0.921569),
    # (0.784314 - 0.485) / 0.229, (0.078431 - 0.456) / 0.224, (0.039216 - 0.406) / 0.225
    "simswap_256": (1.307047, -1.685574, -1.630153),
}


@pytest.mark.parametrize("name", EVERY)
def test_pixels_reach_the_network_as_it_was_trained(name: str, standins: StandIns) -> None:
    runtime = RecordingRuntime()
    swapper = standins.swapper(name, runtime)
    swapper.swapped(flat(), [Target(face(), row(swapper))], SwapOptions())
    fed = runtime.sessions[name].fed[-1]["target"]
    size = FAMILIES[name].parameters["size"]
    assert fed.dtype == np.float32
    assert fed.shape == (1, 3, size, size)
    np.testing.assert_allclose(fed.min(axis=(0, 2, 3)), LEVELS[name], atol=2e-6)
    np.testing.assert_allclose(fed.max(axis=(0, 2, 3)), LEVELS[name], atol=2e-6)


# viewer's left eye in the crop, pixels: the published templates times the size (inswapper: 38.2946 + 8, 51.6963)
LEFT_EYE = {
    "inswapper": (46.2946, 51.6963),
    "inswapper_fp16": (46.2946, 51.6963),
    "hyperswap": (92.5892, 103.3926),
    "alphaface": (92.5892, 103.3926),
    "simswap_256": (90.8114, 116.8869),
    "simswap_512": (181.6229, 233.7737),
    "ghost": (90.8114, 116.8869),
    "hififace": (93.6009, 119.6385),
    "blendswap": (96.4907, 119.9741),
    "uniface": (96.4907, 119.9741),
}


@pytest.mark.parametrize("name", EVERY)
def test_the_face_lies_where_the_network_expects_it(
    name: str, standins: StandIns, portrait: Callable[[str], Portrait]
) -> None:
    swapper = standins.swapper(name, RecordingRuntime())
    found = portrait("astronaut")
    mesh = found.faces[0].mesh
    (crop,) = swapper.swapped(found.image, [Target(mesh, row(swapper))], SwapOptions()).crops
    eye = crop.matrix @ [*five_points(mesh)[0], 1]
    size = int(FAMILIES[name].parameters["size"])
    # least squares over five points: a real face's eye is near its place, not on it
    np.testing.assert_allclose(eye, LEFT_EYE[name], atol=0.025 * size)
    rest = crop.matrix[:, :2] @ crop.matrix[:, :2].T
    np.testing.assert_allclose(rest, rest[0, 0] * np.eye(2), atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("given", "bgr"),
    [((1.0, 0.5, 0.0), (0, 128, 255)), ((0.2509, 0.2511, 9.0), (255, 64, 64)), ((0.0, 0.2489, -3.0), (0, 63, 0))],
)
def test_the_networks_answer_becomes_levels(
    name: str, given: tuple[float, float, float], bgr: tuple[int, int, int], standins: StandIns
) -> None:
    """`given` in 0..1, red first; a network that answers in -1..1 says the same as 2 x - 1."""
    answer = np.array([2 * v - 1 for v in given] if FAMILIES[name].signed else given, np.float32)

    def says(feeds: Mapping[str, NDArray[Any]]) -> list[Floats]:
        return [np.broadcast_to(answer[:, None, None], feeds["target"].shape).copy()]

    swapper = standins.swapper(name, RecordingRuntime(**{name: says}))
    (picture,) = swapper.swapped(flat(), [Target(face(), row(swapper))], SwapOptions()).pictures
    assert picture.reshape(-1, 3).min(0).tolist() == list(bgr)
    assert picture.reshape(-1, 3).max(0).tolist() == list(bgr)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("factor", [1, 2])
def test_a_network_that_changes_nothing_gives_the_crop_back_exactly(name: str, factor: int, standins: StandIns) -> None:
    def echo(feeds: Mapping[str, NDArray[Any]]) -> list[Floats]:
        table = FAMILIES[name].parameters
        planes = feeds["target"]
        if name == "simswap_256":  # takes normalised pixels, answers in 0..1
            mean = np.array([table[f"mean_{c}"] for c in "rgb"], np.float32).reshape(1, 3, 1, 1)
            std = np.array([table[f"std_{c}"] for c in "rgb"], np.float32).reshape(1, 3, 1, 1)
            planes = planes * std + mean
        return [planes]

    swapper = standins.swapper(name, RecordingRuntime(**{name: echo}))
    options = SwapOptions(boost=swapper.size * factor)
    swapped = swapper.swapped(noise(), [Target(face(), row(swapper))], options)
    np.testing.assert_array_equal(swapped.pictures[0], swapped.crops[0].pixels)


# identities, by hand


def test_emap_with_both_norms_by_hand() -> None:
    raw = np.zeros(512, np.float32)
    raw[:2] = 3, 4
    emap = np.diag(np.r_[2.0, 0.5, np.ones(510)]).astype(np.float32)
    # raw / 5 = (0.6, 0.8); through emap (1.2, 0.4); its length sqrt(1.6) = 1.264911
    np.testing.assert_allclose(latent(raw, emap, renorm=False)[:3], [1.2, 0.4, 0], atol=1e-6)
    np.testing.assert_allclose(latent(raw, emap, renorm=True)[:3], [0.948683, 0.316228, 0], atol=1e-6)


@pytest.mark.parametrize(("changed", "length"), [({}, 1.0), ({"renorm": True}, 1.0), ({"renorm": False}, 1.264911)])
def test_inswapper_brings_the_latent_to_length_one_unless_the_table_says_no(
    changed: dict[str, bool], length: float, standins: StandIns, tmp_path: Any
) -> None:
    emap = tmp_path / "emap.npy"
    np.save(emap, np.diag(np.r_[2.0, 0.5, np.ones(510)]).astype(np.float32))
    assets = ModelAssets(
        "inswapper",
        {**standins.files("inswapper"), "emap": emap},
        {**FAMILIES["inswapper"].parameters, **changed},
        {"embedder": FixedEmbedder({0: (3, 4)})},
    )
    prepared = InSwapper(assets, Runtime(threads=1)).prepare([SourceFace(np.zeros((9, 9, 3), np.uint8), face())])
    assert np.linalg.norm(prepared.values) == pytest.approx(length, abs=1e-6)
    assert prepared.values.dtype == np.float32


def test_inswapper_takes_the_row_of_the_graph_itself(standins: StandIns) -> None:
    """raw @ emap, not emap @ raw: which of the two the orthogonal stand-in shows."""
    emap = np.load(standins.files("inswapper")["emap"])
    swapper = standins.swapper("inswapper", Runtime(threads=1), embedder=FixedEmbedder({0: (3, 4)}))
    prepared = swapper.prepare([SourceFace(np.zeros((9, 9, 3), np.uint8), face())])
    np.testing.assert_allclose(prepared.values, 0.6 * emap[0] + 0.8 * emap[1], atol=1e-6)


def test_hyperswap_takes_length_one_and_alphaface_the_raw_vector(standins: StandIns) -> None:
    embedder = FixedEmbedder({0: (3, 4)})
    source = [SourceFace(np.zeros((9, 9, 3), np.uint8), face())]
    for name, expected in (("hyperswap", (0.6, 0.8, 0)), ("alphaface", (3, 4, 0))):
        swapper = standins.swapper(name, Runtime(threads=1), embedder=embedder)
        np.testing.assert_allclose(swapper.prepare(source).values[:3], expected, atol=1e-6)


CONVERTED = {"simswap_256": True, "simswap_512": True, "ghost": False, "hififace": True}


@pytest.mark.parametrize("name", sorted(CONVERTED))
def test_the_converter_takes_the_raw_vector_and_only_ghost_keeps_its_length(name: str, standins: StandIns) -> None:
    def says(feeds: Mapping[str, NDArray[Any]]) -> list[Floats]:
        return [feeds["input"] * np.float32(2)]

    runtime = RecordingRuntime(**{f"{name}_converter": says})
    swapper = standins.swapper(name, runtime, embedder=FixedEmbedder({0: (3, 4)}))
    prepared = swapper.prepare([SourceFace(np.zeros((9, 9, 3), np.uint8), face())])
    (fed,) = runtime.sessions[f"{name}_converter"].fed
    assert fed["input"].shape == (1, 512)
    np.testing.assert_allclose(fed["input"][0, :3], [3, 4, 0])
    expected = (0.6, 0.8, 0) if CONVERTED[name] else (6, 8, 0)
    np.testing.assert_allclose(prepared.values[:3], expected, atol=1e-6)


@pytest.mark.parametrize("name", EMBEDDING)
def test_several_sources_are_one_identity_from_the_mean_of_their_raw_vectors(name: str, standins: StandIns) -> None:
    rows = {0: (3, 4), 1: (5, 0), 2: (4, 2)}  # the third is the mean of the first two
    swapper = standins.swapper(name, Runtime(threads=1), embedder=FixedEmbedder(rows))
    first, second, mean = (SourceFace(np.full((9, 9, 3), level, np.uint8), face()) for level in range(3))
    both, alone = swapper.prepare([first, second]).values, swapper.prepare([mean]).values
    np.testing.assert_allclose(both, alone, atol=1e-6)
    assert not np.allclose(both, swapper.prepare([first]).values, atol=1e-3)


@pytest.mark.parametrize(("name", "size"), [("blendswap", 112), ("uniface", 256)])
def test_a_source_picture_is_levels_over_255_and_the_most_frontal(name: str, size: int, standins: StandIns) -> None:
    swapper = standins.swapper(name, Runtime(threads=1))
    turned, frontal = face(turned=30), face(turned=5)
    assert abs(pose_of(turned).yaw) > abs(pose_of(frontal).yaw)
    values = swapper.prepare([SourceFace(noise(), turned), SourceFace(flat(), frontal)]).values
    assert values.shape == (3, size, size)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values.min(axis=(1, 2)), (0.784314, 0.078431, 0.039216), atol=1e-6)
    np.testing.assert_allclose(values.max(axis=(1, 2)), (0.784314, 0.078431, 0.039216), atol=1e-6)
