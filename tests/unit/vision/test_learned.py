"""The pipeline that all learned swappers share: runs, frames, maskers, tables, on every family's stand-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from shared.errors import ConfigError, InvalidOptionError, ModelInvalidError
from shared.vision.protocols import Floats, Image, ModelAssets, SourceFace, SwapOptions, Target
from shared.vision.runtime import Runtime
from shared.vision.swapper.inswapper import InSwapper
from tests.standins.faces import face, flat, noise, row
from tests.standins.swappers import FAMILIES, Build
from tests.standins.world import FixedEmbedder, RecordingRuntime, StandIns
from tests.unit.vision.conftest import Portrait

EVERY = sorted(FAMILIES)
EMBEDDING = [name for name in EVERY if len(FAMILIES[name].source) == 1]


@pytest.fixture(scope="module")
def standins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    return StandIns(tmp_path_factory.mktemp("standins"))


@pytest.mark.parametrize("name", EVERY)
def test_source_and_target_both_matter(name: str, standins: StandIns, runtime: Runtime) -> None:
    swapper = standins.swapper(name, runtime)
    options = SwapOptions()
    frame = noise()

    def pictures(seen: Image, seed: int) -> Image:
        return swapper.swapped(seen, [Target(face(), row(swapper, seed))], options).pictures

    first = pictures(frame, 0)
    np.testing.assert_array_equal(first, pictures(frame, 0))
    assert np.abs(first.astype(int) - pictures(frame, 1)).mean() > 0.05
    assert np.abs(first.astype(int) - pictures(noise(seed=9), 0)).mean() > 5


@pytest.mark.parametrize("name", EVERY)
def test_faces_of_a_frame_share_one_run_and_come_out_as_one_by_one(
    name: str, standins: StandIns, portrait: Callable[[str], Portrait]
) -> None:
    found = portrait("t1")
    runtime = RecordingRuntime()
    swapper = standins.swapper(name, runtime)
    targets = [Target(f.mesh, row(swapper, seed)) for seed, f in enumerate(found.faces[:3])]
    together = swapper.swapped(found.image, targets, SwapOptions()).pictures
    assert len(runtime.sessions[name].fed) == 1
    for target, picture in zip(targets, together, strict=True):
        (alone,) = swapper.swapped(found.image, [target], SwapOptions()).pictures
        assert np.abs(alone.astype(int) - picture).max() <= 1


def test_all_tiles_of_all_faces_share_one_run_and_the_identity_is_made_once(standins: StandIns) -> None:
    runtime = RecordingRuntime()
    embedder = FixedEmbedder({10: (3, 4)})
    swapper = standins.swapper("inswapper", runtime, embedder=embedder)
    identity = swapper.prepare([SourceFace(flat(), face())])
    frame = noise()
    swapper.swap(frame, [Target(face(120, 200), identity), Target(face(280, 200), identity)], SwapOptions(boost=512))
    (fed,) = runtime.sessions["inswapper"].fed
    assert fed["target"].shape == (2 * 16, 3, 128, 128)
    assert fed["source"].shape == (2 * 16, 512)
    assert embedder.calls == 1


@pytest.mark.parametrize("name", ["inswapper", "blendswap", "ghost"])
def test_a_graph_with_a_fixed_batch_is_run_one_by_one(name: str, standins: StandIns) -> None:
    free, fixed = RecordingRuntime(), RecordingRuntime()
    frame = noise()
    answers = []
    for runtime, how in ((free, Build()), (fixed, Build(batch=1))):
        swapper = standins.swapper(name, runtime, how)
        targets = [Target(face(120, 200), row(swapper, 1)), Target(face(280, 200), row(swapper, 2))]
        answers.append(swapper.swapped(frame, targets, SwapOptions()).pictures.astype(int))
    assert [len(fed["target"]) for fed in free.sessions[name].fed] == [2]
    assert [len(fed["target"]) for fed in fixed.sessions[name].fed] == [1, 1]
    assert np.abs(answers[0] - answers[1]).max() <= 1


def test_half_precision_weights_give_nearly_the_same_picture(standins: StandIns, runtime: Runtime) -> None:
    frame = noise()
    pictures = []
    for name in ("inswapper", "inswapper_fp16"):
        swapper = standins.swapper(name, runtime)
        pictures.append(swapper.swapped(frame, [Target(face(), row(swapper))], SwapOptions()).pictures.astype(int))
    assert np.abs(pictures[0] - pictures[1]).max() <= 3


def test_values_that_are_no_numbers_are_an_error_and_not_a_black_face(standins: StandIns) -> None:
    def says(feeds: Mapping[str, NDArray[Any]]) -> list[Floats]:
        return [np.full_like(feeds["target"], np.nan)]

    swapper = standins.swapper("inswapper", RecordingRuntime(inswapper=says))
    frame = noise()
    with pytest.raises(ModelInvalidError, match="no numbers"):
        swapper.swap(frame, [Target(face(), row(swapper))], SwapOptions())
    np.testing.assert_array_equal(frame, noise())


# the frame


@pytest.mark.parametrize("name", EVERY)
def test_no_pixel_outside_the_crop_changes(
    name: str, standins: StandIns, portrait: Callable[[str], Portrait], runtime: Runtime
) -> None:
    found = portrait("astronaut")
    swapper = standins.swapper(name, runtime)
    frame = found.image.copy()
    target = Target(found.faces[0].mesh, row(swapper))
    (crop,) = swapper.swapped(frame, [target], SwapOptions()).crops
    swapper.swap(frame, [target], SwapOptions())
    inside = cv2.warpAffine(
        np.ones(crop.pixels.shape[:2], np.uint8), crop.matrix, frame.shape[1::-1], flags=cv2.WARP_INVERSE_MAP
    )
    changed = (frame != found.image).any(2)
    assert not (changed & (cv2.dilate(inside, np.ones((3, 3), np.uint8)) == 0)).any()
    assert changed.sum() > 0.3 * inside.sum()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("picture_name", "unchanged"),
    [("face_cut_left_border.jpg", np.s_[:, 120:]), ("face_cut_top_border.jpg", np.s_[160:])],
)
def test_face_05_cut_by_the_border(
    name: str, picture_name: str, unchanged: Any, standins: StandIns, picture: Callable[[str], Image], runtime: Runtime
) -> None:
    original = picture(picture_name)
    swapper = standins.swapper(name, runtime)
    # as the cases place it: a face pasted at x = -70 or y = -70, of which only a part is left
    mesh = face(0, 100, 60) if "left" in picture_name else face(200, 10, 60)
    frame = original.copy()
    swapper.swap(frame, [Target(mesh, row(swapper))], SwapOptions())
    assert frame.shape == original.shape
    assert (frame != original).any()
    np.testing.assert_array_equal(frame[unchanged], original[unchanged])


NOWHERE: dict[str, Floats] = {
    "outside": face(-400, -400),
    "far outside": face(1e7, 0),
    "a sliver": face(200, 200, 2),
    "a point": np.full((468, 3), 100, np.float32),
    "no numbers": np.full((468, 3), np.nan, np.float32),
    "infinite": np.full((468, 3), np.inf, np.float32),
}


@pytest.mark.parametrize("name", ["inswapper", "uniface"])
@pytest.mark.parametrize("where", sorted(NOWHERE))
def test_a_face_that_is_nowhere_changes_nothing_and_others_are_swapped(
    name: str, where: str, standins: StandIns, runtime: Runtime
) -> None:
    swapper = standins.swapper(name, runtime)
    frame = noise()
    swapper.swap(frame, [Target(NOWHERE[where], row(swapper))], SwapOptions())
    np.testing.assert_array_equal(frame, noise())
    swapper.swap(frame, [Target(NOWHERE[where], row(swapper)), Target(face(), row(swapper))], SwapOptions())
    assert (frame != noise()).any()


@pytest.mark.parametrize("name", ["inswapper", "ghost", "blendswap"])
@pytest.mark.parametrize("size", [18.0, 1500.0])
def test_tiny_and_huge_faces(name: str, size: float, standins: StandIns, runtime: Runtime) -> None:
    swapper = standins.swapper(name, runtime)
    frame = noise()
    swapper.swap(frame, [Target(face(200, 200, size), row(swapper))], SwapOptions())
    assert (frame != noise()).any()


@pytest.mark.parametrize("shape", [(9, 400), (400, 9), (64, 64)])
def test_img_frames_of_any_shape(shape: tuple[int, int], standins: StandIns, runtime: Runtime) -> None:
    swapper = standins.swapper("inswapper", runtime)
    frame = np.full((*shape, 3), 90, np.uint8)
    swapper.swap(frame, [Target(face(shape[1] / 2, shape[0] / 2, 60), row(swapper))], SwapOptions())
    assert frame.shape == (*shape, 3)


class Half:
    """A masker that leaves the upper half to the target."""

    def __init__(self, *, sees_swapped: bool) -> None:
        self.sees_swapped = sees_swapped
        self.seen: list[Image] = []

    def warm(self) -> None: ...

    def mask(self, crops: Image) -> Floats:
        self.seen.append(crops)
        mask = np.ones(crops.shape[:3], np.float32)
        mask[:, : crops.shape[1] // 2] = 0
        return mask


def test_maskers_see_the_crop_they_are_made_for_and_masks_are_joined_by_minimum(
    standins: StandIns, runtime: Runtime
) -> None:
    swapper = standins.swapper("hyperswap", runtime)
    target = Target(face(), row(swapper))
    frame = noise()
    swapped = swapper.swapped(frame, [target], SwapOptions())
    occluder, parser = Half(sees_swapped=False), Half(sees_swapped=True)
    swapper.swap(frame, [target], SwapOptions(), [occluder, parser])
    np.testing.assert_array_equal(occluder.seen[0][0], swapped.crops[0].pixels)
    np.testing.assert_array_equal(parser.seen[0][0], swapped.pictures[0])
    changed = (frame != noise()).any(2)
    middle = swapped.crops[0].matrix
    rows = np.flatnonzero(changed.any(1))
    boundary = (swapped.pictures.shape[1] / 2 - middle[1, 2]) / middle[1, 1]
    assert rows.min() >= boundary - 2
    assert rows.max() > boundary + 10


def test_padding_keeps_its_part_of_the_target(standins: StandIns, runtime: Runtime) -> None:
    swapper = standins.swapper("hyperswap", runtime)
    whole, cut = noise(), noise()
    target = Target(face(), row(swapper))
    swapper.swap(whole, [target], SwapOptions())
    swapper.swap(cut, [target], SwapOptions(mask_padding=(0.5, 0.0, 0.0, 0.0)))
    first = [np.flatnonzero((frame != noise()).any(2).any(1)).min() for frame in (whole, cut)]
    assert first[1] > first[0] + 10


def test_colour_match_brings_the_colours_back(standins: StandIns) -> None:
    def greener(feeds: Mapping[str, NDArray[Any]]) -> list[Floats]:
        planes = feeds["target"].copy()
        planes[:, 1] += 0.08
        return [planes]

    swapper = standins.swapper("alphaface", RecordingRuntime(alphaface=greener))
    drift = []
    for matched in (False, True):
        frame = noise()
        swapper.swap(frame, [Target(face(), row(swapper))], SwapOptions(colour_match=matched))
        drift.append(np.abs(frame[190:210, 190:210].mean((0, 1)) - noise()[190:210, 190:210].mean((0, 1))).max())
    assert drift[0] > 15
    assert drift[1] < 5


# tables


@pytest.mark.parametrize("boost", [100, 192, 64, 1152, -128])
def test_a_boost_the_model_cannot_do_names_the_field(boost: int, standins: StandIns, runtime: Runtime) -> None:
    swapper = standins.swapper("inswapper", runtime)
    with pytest.raises(InvalidOptionError) as caught:
        swapper.swap(noise(), [Target(face(), row(swapper))], SwapOptions(boost=boost))
    assert caught.value.context == {"field": "boost"}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("inswapper", "size", "128"),
        ("inswapper", "size", True),
        ("inswapper", "size", 0),
        ("inswapper", "template", 5),
        ("inswapper", "mean", "none"),
        ("inswapper", "latent", "raw"),
        ("hyperswap", "latent", "emap"),
        ("hyperswap", "unnorm", 1),
        ("blendswap", "source_size", 1.5),
    ],
)
def test_a_wrong_number_in_a_table_is_named(
    name: str, parameter: str, value: Any, standins: StandIns, runtime: Runtime
) -> None:
    with pytest.raises(ConfigError, match=f"{name}: {parameter} must be"):
        standins.swapper(name, runtime, **{parameter: value})


@pytest.mark.parametrize(
    ("name", "missing"), [("ghost", "size"), ("ghost", "template"), ("ghost", "std_r"), ("uniface", "source_size")]
)
def test_a_missing_number_is_named(name: str, missing: str, standins: StandIns, runtime: Runtime) -> None:
    dropped = {"std"} if missing == "std_r" else {missing}
    swapper = standins.swapper(name, runtime)
    table = {key: value for key, value in FAMILIES[name].parameters.items() if key not in dropped}
    assets = ModelAssets(name, standins.files(name), table, {"embedder": FixedEmbedder({})})
    with pytest.raises(ConfigError, match=f"{name} has no parameter '{missing}'"):
        type(swapper)(assets, runtime)


@pytest.mark.parametrize("name", EMBEDDING)
def test_an_embedding_family_without_an_embedder_says_so(name: str, standins: StandIns, runtime: Runtime) -> None:
    swapper = standins.swapper(name, runtime)
    assets = ModelAssets(name, standins.files(name), FAMILIES[name].parameters)
    with pytest.raises(ConfigError, match="embedder"):
        type(swapper)(assets, runtime)


def test_an_emap_of_another_shape_is_no_emap(standins: StandIns, runtime: Runtime, tmp_path: Any) -> None:
    np.save(tmp_path / "emap.npy", np.zeros((512, 256), np.float32))
    files = {**standins.files("inswapper"), "emap": tmp_path / "emap.npy"}
    assets = ModelAssets("inswapper", files, FAMILIES["inswapper"].parameters, {"embedder": FixedEmbedder({})})
    with pytest.raises(ModelInvalidError, match="512 x 512"):
        InSwapper(assets, runtime)


@pytest.mark.parametrize("name", EVERY)
def test_warm_runs_every_network_of_the_family(name: str, standins: StandIns) -> None:
    runtime = RecordingRuntime()
    standins.swapper(name, runtime).warm()
    assert runtime.sessions
    assert all(session.fed for session in runtime.sessions.values())
