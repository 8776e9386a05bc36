"""The embedder: what reaches the network, and what comes back, one row per face."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shared.errors import ConfigError
from shared.vision.embedder.arcface import ArcFace
from shared.vision.geometry import five_points
from shared.vision.protocols import ModelAssets
from shared.vision.runtime import Runtime
from tests.standins import embedders
from tests.standins.world import RecordingRuntime, StandIns
from tests.unit.vision.conftest import Portrait


@pytest.fixture(scope="module")
def standins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    return StandIns(tmp_path_factory.mktemp("standins"))


def test_pixels_are_level_over_127_5_minus_one_in_rgb(standins: StandIns) -> None:
    runtime = RecordingRuntime()
    embedder = standins.embedder(runtime)
    image = np.full((200, 200, 3), (10, 20, 200), np.uint8)
    points = np.array([[80, 80], [120, 80], [100, 105], [85, 130], [115, 130]], np.float32)
    rows = embedder.embed(image, [points])
    (fed,) = runtime.sessions["arcface"].fed
    assert fed["input"].shape == (1, 3, 112, 112)
    assert fed["input"].dtype == np.float32
    # 200 / 127.5 - 1, 20 / 127.5 - 1, 10 / 127.5 - 1
    for of in (fed["input"].min(axis=(0, 2, 3)), fed["input"].max(axis=(0, 2, 3))):
        np.testing.assert_allclose(of, (0.568627, -0.843137, -0.921569), atol=1e-6)
    assert rows.shape == (1, 512)
    assert rows.dtype == np.float32


def test_the_face_lies_where_insightface_puts_it(standins: StandIns) -> None:
    """Five points already in place, in a picture of 112: nothing may be resampled."""
    runtime = RecordingRuntime()
    image = np.random.default_rng(0).integers(0, 256, (112, 112, 3), np.uint8)
    points = np.array(
        [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
    )
    standins.embedder(runtime).embed(image, [points.astype(np.float32)])
    fed = runtime.sessions["arcface"].fed[-1]["input"][0]
    levels = np.rint((fed[::-1].transpose(1, 2, 0) + 1) * 127.5)
    np.testing.assert_allclose(levels, image, atol=1)


def test_all_faces_share_one_run_and_come_out_as_one_by_one(
    standins: StandIns, portrait: Callable[[str], Portrait]
) -> None:
    runtime = RecordingRuntime()
    embedder = standins.embedder(runtime)
    found = portrait("t1")
    points = [five_points(face.mesh) for face in found.faces]
    together = embedder.embed(found.image, points)
    assert together.shape == (6, 512)
    assert len(runtime.sessions["arcface"].fed) == 1
    for row, five in zip(together, points, strict=True):
        np.testing.assert_allclose(embedder.embed(found.image, [five])[0], row, rtol=1e-4, atol=1e-4)
    assert np.linalg.matrix_rank(together) == 6


def test_rows_are_raw(standins: StandIns, portrait: Callable[[str], Portrait], runtime: Runtime) -> None:
    found = portrait("t1")
    lengths = np.linalg.norm(
        standins.embedder(runtime).embed(found.image, [five_points(face.mesh) for face in found.faces]), axis=1
    )
    assert lengths.min() > 3
    assert np.ptp(lengths) > 0.01


def test_no_face_is_no_row(standins: StandIns, runtime: Runtime) -> None:
    assert standins.embedder(runtime).embed(np.zeros((9, 9, 3), np.uint8), []).shape == (0, 512)


@pytest.mark.parametrize("name", ["input", "input.1"])
@pytest.mark.parametrize("batch", ["batch", 1])
def test_both_exports_of_the_network(
    name: str, batch: str | int, tmp_path_factory: pytest.TempPathFactory, runtime: Runtime
) -> None:
    files = embedders.build(tmp_path_factory.mktemp("arcface"), batch, input_name=name)
    embedder = ArcFace(ModelAssets("arcface", files, embedders.PARAMETERS), runtime)
    points = np.array([[80, 80], [120, 80], [100, 105], [85, 130], [115, 130]], np.float32)
    assert embedder.embed(np.zeros((200, 200, 3), np.uint8), [points] * 3).shape == (3, 512)


def test_the_table_must_say_the_template(standins: StandIns, runtime: Runtime) -> None:
    files = embedders.build(standins.folder / "again")
    with pytest.raises(ConfigError, match="template"):
        ArcFace(ModelAssets("arcface", files, {"size": 112, "mean": 0.5, "std": 0.5}), runtime)
