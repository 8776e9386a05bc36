"""The learned detectors on stand-in graphs: decoding by hand, by insightface's own classes and by OpenCV's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.errors import ModelInvalidError
from shared.models import catalog
from shared.vision.detector.looking import OneLook
from shared.vision.detector.scrfd import Scrfd
from shared.vision.detector.suppression import strongest
from shared.vision.detector.yoloface import YoloFace
from shared.vision.detector.yunet import YuNet
from shared.vision.protocols import Image, ModelAssets, Parameter
from shared.vision.runtime import Runtime
from tests.standins import detectors
from tests.standins.detectors import STRIDES, YUNET, Array

SCRFD, YOLO, YU = (catalog.default().model(name).parameters for name in ("scrfd", "yoloface", "yunet"))
NAMES = [f"{kind}_{stride}" for kind in ("score", "box", "point") for stride in STRIDES]
CORNERS = np.arange(10, dtype=np.float32) / 4


def made(family: type[OneLook], path: Path, numbers: Mapping[str, Parameter], runtime: Runtime) -> OneLook:
    return family(ModelAssets(path.stem, {"model": path}, numbers), runtime)  # type: ignore[call-arg, arg-type]


def blank(width: int = 640, height: int = 640) -> Image:
    return np.zeros((height, width, 3), np.uint8)


def scrfd(folder: Path, runtime: Runtime, maps: list[Array], side: int = 640) -> OneLook:
    path = detectors.constant(folder, "scrfd", dict(zip(NAMES, maps, strict=True)), (side, side))
    return made(Scrfd, path, SCRFD, runtime)


@pytest.mark.parametrize("batch", [False, True])
def test_scrfd_by_hand(tmp_path: Path, runtime: Runtime, batch: bool) -> None:
    """Grid of 16 pixels, 40 columns: anchor 2 * (3 * 40 + 5) + 1 is the second of the cell in row 3, column 5."""
    maps = detectors.grids(640, 2, (1, 4, 10), batch=batch)
    at = 2 * (3 * 40 + 5) + 1
    maps[1][..., at, 0] = 0.75
    maps[4][..., at, :] = [1, 1.5, 2, 2.5]
    maps[7][..., at, :] = CORNERS
    (found,) = scrfd(tmp_path, runtime, maps).detect(blank())
    assert found.score == pytest.approx(0.75)
    assert found.box.tolist() == [80 - 16, 48 - 24, 80 + 32, 48 + 40]
    assert found.points.tolist() == (np.array([80, 48]) + CORNERS.reshape(5, 2) * 16).tolist()
    assert (found.box.dtype, found.points.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize("grid", range(3))
def test_a_lone_candidate_at_anchor_0_counts(tmp_path: Path, runtime: Runtime, grid: int) -> None:
    maps = detectors.grids(640, 2, (1, 4, 10), batch=False)
    maps[grid][0, 0] = 0.9
    maps[3 + grid][0] = [0, 0, 2, 3]
    (found,) = scrfd(tmp_path, runtime, maps).detect(blank())
    assert found.box.tolist() == [0, 0, 2 * STRIDES[grid], 3 * STRIDES[grid]]


def test_the_threshold_counts_and_the_floor_of_the_model_holds(tmp_path: Path, runtime: Runtime) -> None:
    maps = detectors.grids(640, 2, (1, 4, 10), batch=False)
    for at, score in ((0, 0.5), (40, 0.3), (80, 0.1)):
        maps[2][at, 0] = score
        maps[5][at] = 0.4
    detector = scrfd(tmp_path, runtime, maps)
    assert [round(found.score, 3) for found in detector.detect(blank(), threshold=0.5)] == [0.5]
    assert [round(found.score, 3) for found in detector.detect(blank(), threshold=0.05)] == [0.5, 0.3]


def random_heads(seed: int, batch: bool) -> list[Array]:
    """Candidates in every row of every grid, with distinct scores; each has a weaker twin in the other anchor of its
    cell, and overlaps no other by much, so that it does not matter to suppression where a box ends exactly."""
    random = np.random.default_rng(seed)
    maps = detectors.grids(640, 2, (1, 4, 10), batch=batch)
    for index, stride in enumerate(STRIDES):
        side = 640 // stride
        cells = np.array([row * side + column for row in range(index, side, 9) for column in range(index, side, 9)])
        for anchor, low, high in ((0, 0.75, 1.0), (1, 0.3, 0.7)):
            at = cells * 2 + anchor
            maps[index][..., at, 0] = random.uniform(low, high, len(at))
            maps[3 + index][..., at, :] = random.uniform(0.9, 1.0, (len(at), 4)) * (1 + index / 10)
            maps[6 + index][..., at, :] = random.uniform(-2, 2, (len(at), 10))
    return maps


@pytest.mark.parametrize(("peer", "batch"), [("SCRFD", False), ("SCRFD", True), ("RetinaFace", False)])
def test_equal_to_insightface(tmp_path: Path, runtime: Runtime, peer: str, batch: bool) -> None:
    """Its RetinaFace reads only graphs without an axis for the batch."""
    insightface = pytest.importorskip("insightface.model_zoo." + peer.lower())
    import onnxruntime

    image = np.random.default_rng(3).integers(0, 255, (960, 1280, 3), np.uint8)
    for seed in range(5):
        ours = scrfd(tmp_path, runtime, random_heads(seed, batch))
        session = onnxruntime.InferenceSession(str(tmp_path / "scrfd.onnx"), providers=["CPUExecutionProvider"])
        theirs = getattr(insightface, peer)(str(tmp_path / "scrfd.onnx"), session)
        boxes, points = theirs.detect(image, input_size=(640, 640))
        found = ours.detect(image, size=640, threshold=0.5)
        limits = np.array([1280, 960] * 2, np.float32)
        clipped = np.clip(boxes[:, :4], 0, limits)
        inside = (clipped[:, 2:] > clipped[:, :2]).all(axis=1)
        assert len(found) == inside.sum() > 80
        assert np.allclose([f.box for f in found], clipped[inside], atol=1e-3)
        assert np.allclose([f.score for f in found], boxes[inside, 4])
        assert np.allclose([f.points for f in found], points[inside], atol=1e-3)


@pytest.mark.parametrize(("channel", "colour"), [(0, "red"), (2, "blue")])
def test_the_network_sees_rgb_scaled_and_laid_into_the_corner(
    tmp_path: Path, runtime: Runtime, channel: int, colour: str
) -> None:
    """A square of 16 pixels at (320, 160) of 1280 x 640: at 640 it is one cell of 8 pixels, in column 20 and row 10."""
    picture = blank(1280, 640)
    picture[160:176, 320:336, 2 if colour == "red" else 0] = 255
    for seen in (channel, 2 - channel):
        detector = made(Scrfd, detectors.bright(tmp_path, seen), SCRFD, runtime)
        found = detector.detect(picture, size=640)
        assert bool(found) == (seen == channel)
    (face,) = made(Scrfd, detectors.bright(tmp_path, channel), SCRFD, runtime).detect(picture, size=640)
    assert face.score == pytest.approx((255 - 127.5) / 128)
    assert face.box.tolist() == [2 * (160 - 12), 2 * (80 - 12), 2 * (160 + 12), 2 * (80 + 12)]
    bgr = made(Scrfd, detectors.bright(tmp_path, 2 - channel), {**SCRFD, "colour": "bgr"}, runtime)
    assert bgr.detect(picture, size=640)[0].box.tolist() == face.box.tolist()


def test_the_asked_size_is_the_longest_side(tmp_path: Path, runtime: Runtime) -> None:
    """Of a network with free sides; one with fixed sides looks at no more than they hold."""
    free = made(Scrfd, detectors.bright(tmp_path, 0), SCRFD, runtime)
    picture = blank(100, 50)
    picture[:, :, 2] = 255
    for size, ratio in ((100, 1), (200, 2), (320, 3.2)):
        found = free.detect(picture, size=size)
        assert {round(float(face.points[0, 0]) * ratio, 2) % 8 for face in found} == {0}
        assert max(float(face.points[0, 0]) for face in found) < 100
    maps = detectors.grids(640, 2, (1, 4, 10), batch=False)
    maps[2][0, 0], maps[5][0] = 0.9, 1
    fixed = scrfd(tmp_path, runtime, maps)
    assert fixed.detect(blank(1280, 640), size=1280)[0].box.tolist() == [0, 0, 64, 64]
    assert fixed.detect(blank(1280, 640), size=320)[0].box.tolist() == [0, 0, 128, 128]


def test_boxes_are_clipped_and_what_lies_in_the_black_rest_is_no_face(tmp_path: Path, runtime: Runtime) -> None:
    maps = detectors.grids(640, 2, (1, 4, 10), batch=False)
    maps[2][[0, -1], 0] = 0.9
    maps[5][[0, -1]] = 1
    (found,) = scrfd(tmp_path, runtime, maps).detect(blank(640, 20))
    assert found.box.tolist() == [0, 0, 32, 20]


@pytest.mark.parametrize("shape", [(1, 1), (3, 2000), (2000, 3), (31, 33)])
def test_any_shape_is_looked_at(tmp_path: Path, runtime: Runtime, shape: tuple[int, int]) -> None:
    detector = made(Scrfd, detectors.bright(tmp_path, 0), SCRFD, runtime)
    detector.warm()
    assert detector.detect(np.zeros((*shape, 3), np.uint8), size=320) == []


def test_a_graph_of_another_kind_is_refused(tmp_path: Path, runtime: Runtime) -> None:
    maps = detectors.grids(640, 2, (1, 4, 10), batch=False)
    with pytest.raises(ModelInvalidError):
        made(
            Scrfd,
            detectors.constant(tmp_path, "six", dict(zip(NAMES[:6], maps, strict=False)), (640, 640)),
            SCRFD,
            runtime,
        )
    small = detectors.grids(320, 2, (1, 4, 10), batch=False)
    with pytest.raises(ModelInvalidError):
        scrfd(tmp_path, runtime, small).detect(blank())


def test_the_tables_are_those_of_the_families() -> None:
    """Levels as the networks were trained with them: InsightFace's, YOLOv8's, OpenCV's."""
    known = catalog.default()
    assert known.model("retinaface").parameters == known.model("scrfd").parameters
    levels = [(table["mean"], table["std"], table["colour"]) for table in (SCRFD, YOLO, YU)]
    assert levels == [(127.5, 128.0, "rgb"), (0.0, 255.0, "rgb"), (0.0, 1.0, "bgr")]
    for name, family in (("retinaface", Scrfd), ("scrfd", Scrfd), ("yoloface", YoloFace), ("yunet", YuNet)):
        assert known.model(name).adapter == f"{family.__module__}:{family.__name__}"


def test_yoloface_by_hand(tmp_path: Path, runtime: Runtime) -> None:
    table = np.zeros((1, 20, 8400), np.float32)
    table[0, :5, 0] = [100, 60, 40, 20, 0.9]
    table[0, 5:, 0] = np.arange(15)
    table[0, :5, 17] = [101, 60, 40, 20, 0.8]
    table[0, :5, 8399] = [300, 200, 10, 30, 0.6]
    path = detectors.constant(tmp_path, "yoloface", {"output0": table}, (640, 640))
    first, second = made(YoloFace, path, YOLO, runtime).detect(blank(1280, 1280))
    assert first.box.tolist() == [160, 100, 240, 140]
    assert first.points.tolist() == [[0, 2], [6, 8], [12, 14], [18, 20], [24, 26]]
    assert (first.score, second.score) == (pytest.approx(0.9), pytest.approx(0.6))
    assert second.box.tolist() == [590, 370, 610, 430]


def yunet(folder: Path, runtime: Runtime, maps: list[Array]) -> OneLook:
    path = detectors.constant(folder, "yunet", dict(zip(YUNET, maps, strict=True)), (640, 640))
    return made(YuNet, path, YU, runtime)


def test_yunet_by_hand(tmp_path: Path, runtime: Runtime) -> None:
    """Grid of 32 pixels, 20 columns, row 2 and column 3; class 1.2 is cut to 1."""
    maps = detectors.grids(640, 1, (1, 1, 4, 10), batch=True)
    at = 2 * 20 + 3
    maps[2][0, at], maps[5][0, at] = 1.2, 0.7
    maps[8][0, at] = [0.5, 0.25, np.log(2), np.log(3)]
    maps[11][0, at] = CORNERS
    (found,) = yunet(tmp_path, runtime, maps).detect(blank())
    assert found.score == pytest.approx(0.7)
    assert found.box.tolist() == pytest.approx([3.5 * 32 - 32, 2.25 * 32 - 48, 3.5 * 32 + 32, 2.25 * 32 + 48])
    assert found.points.tolist() == ((np.array([3, 2]) + CORNERS.reshape(5, 2)) * 32).tolist()


def test_yunet_equal_to_opencv(tmp_path: Path, runtime: Runtime) -> None:
    """OpenCV's own class on the same graph; its score is the square root of ours."""
    random = np.random.default_rng(5)
    maps = detectors.grids(640, 1, (1, 1, 4, 10), batch=True)
    for index in range(3):
        chosen = np.arange(7, maps[index].shape[1], 41)
        maps[index][0, chosen, 0] = random.uniform(0.5, 1, len(chosen))
        maps[3 + index][0, chosen, 0] = random.uniform(0.5, 1, len(chosen))
        maps[6 + index][0, chosen] = random.uniform(-0.5, 0.5, (len(chosen), 4))
        maps[9 + index][0, chosen] = random.uniform(-1, 1, (len(chosen), 10))
    detector = yunet(tmp_path, runtime, maps)
    peer = cv2.FaceDetectorYN.create(str(tmp_path / "yunet.onnx"), "", (640, 640), 0.5**0.5, 0.4)
    _, rows = peer.detect(blank())
    rows = rows[np.argsort(-rows[:, 14], kind="stable")]
    found = detector.detect(blank(), threshold=0.5)
    assert len(found) == len(rows) > 20
    theirs = np.clip(np.concatenate([rows[:, :2], rows[:, :2] + rows[:, 2:4]], axis=1), 0, 640)
    assert np.allclose([f.box for f in found], theirs, atol=1e-3)
    assert np.allclose([f.points.ravel() for f in found], rows[:, 4:14], atol=1e-3)
    assert np.allclose([f.score for f in found], rows[:, 14] ** 2, atol=1e-5)


def test_suppression_by_hand() -> None:
    boxes = np.float32([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10], [0, 0, 10, 30], [5, 5, 5, 5]])
    scores = np.float32([0.8, 0.9, 0.7, 0.6, 0.5])
    assert strongest(boxes, scores, 0.4).tolist() == [1, 2, 3, 4]
    assert strongest(boxes, scores, 0.9).tolist() == [1, 0, 2, 3, 4]
    assert strongest(boxes[:0], scores[:0], 0.4).tolist() == []
    assert strongest(boxes[[0, 0]], scores[[0, 0]], 0.4).tolist() == [0]
