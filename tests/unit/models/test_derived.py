"""What is made at fetch time, on small graphs with the learned models' interfaces: a free batch, inswapper's emap."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from shared.errors import ModelInvalidError
from shared.models.cache import ModelCache
from shared.models.convert import emap, free_batch
from shared.models.spec import FileSpec
from shared.vision.runtime import Runtime
from tests.unit.models.places import digest, file_set

EMAP = np.linalg.qr(np.random.default_rng(7).standard_normal((512, 512)))[0]
FREE_BATCH, TAKE_EMAP = "shared.models.convert.free_batch:convert", "shared.models.convert.emap:convert"


def value(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    **weights: NDArray[np.generic],
) -> bytes:
    tensors = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(list(nodes), "standin", list(inputs), list(outputs), tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return bytes(made.SerializeToString())


def inswapper(batch: int | str = 1, weight: type[np.floating] = np.float32, last: NDArray[np.generic] = EMAP) -> bytes:
    """Frozen like the published file: `target` and `source` of one face, a style of [1, 2, 1, 1], emap last."""
    rng, half = np.random.default_rng(3), weight is np.float16
    node, nodes = helper.make_node, []
    for name in ("source", "target") if half else ():
        nodes.append(node("Cast", [name], [f"{name}_in"], to=TensorProto.FLOAT16))
    source, target = ("source_in", "target_in") if half else ("source", "target")
    nodes += [
        node("Gemm", [source, "style", "zero"], ["flat"]),
        node("Reshape", ["flat", "shape"], ["style_map"]),
        node("Conv", [target, "in"], ["features"], pads=[1, 1, 1, 1]),
        node("Mul", ["features", "style_map"], ["styled"]),
        node("Conv", ["styled", "out"], ["rgb" if half else "output"], pads=[1, 1, 1, 1]),
    ]
    if half:
        nodes.append(node("Cast", ["rgb"], ["output"], to=TensorProto.FLOAT))
    return model(
        nodes,
        [value("target", batch, 3, 16, 16), value("source", batch, 512)],
        [value("output", batch, 3, 16, 16)],
        style=rng.standard_normal((512, 2)).astype(weight) / 16,
        zero=np.zeros(2, weight),
        shape=np.array([1 if batch == 1 else -1, 2, 1, 1], np.int64),
        **{
            "in": rng.standard_normal((2, 3, 3, 3)).astype(weight),
            "out": rng.standard_normal((3, 2, 3, 3)).astype(weight),
        },
        emap=last.astype(weight),
    )


def grouped() -> bytes:
    """A convolution whose weights are made from the source, one group a sample: for two samples it needs two groups."""
    rng, node = np.random.default_rng(5), helper.make_node
    return model(
        [
            node("Gemm", ["source", "style"], ["flat"]),
            node("Reshape", ["flat", "kernel"], ["weights"]),
            node("Conv", ["target", "weights"], ["output"], pads=[1, 1, 1, 1]),
        ],
        [value("target", 1, 3, 16, 16), value("source", 1, 512)],
        [value("output", 1, 3, 16, 16)],
        style=rng.standard_normal((512, 81)).astype(np.float32),
        kernel=np.array([3, 3, 3, 3], np.int64),
    )


def mixing() -> bytes:
    """Runs with any batch, but what one sample gives depends on the others."""
    node = helper.make_node
    nodes = [node("ReduceMean", ["input", "axes"], ["mean"]), node("Sub", ["input", "mean"], ["output"])]
    return model(nodes, [value("input", 1, 8)], [value("output", 1, 8)], axes=np.array([0], np.int64))


def codeformer() -> bytes:
    """A second input that is no sample: one float64 weight for all of them."""
    node = helper.make_node
    return model(
        [
            node("Cast", ["weight"], ["w"], to=TensorProto.FLOAT),
            node("Mul", ["input", "w"], ["scaled"]),
            node("Reshape", ["scaled", "line"], ["flat"]),
            node("Reshape", ["flat", "back"], ["output"]),
        ],
        [value("input", 1, 3, 8, 8), value("weight", 1, kind=TensorProto.DOUBLE)],
        [value("output", 1, 3, 8, 8)],
        line=np.array([1, -1], np.int64),
        back=np.array([1, 3, 8, 8], np.int64),
    )


@pytest.fixture
def free(tmp_path: Path) -> Callable[[bytes], tuple[Path, str | None]]:
    def convert(data: bytes) -> tuple[Path, str | None]:
        (tmp_path / "source").write_bytes(data)
        said = free_batch.convert(tmp_path / "source", tmp_path / "free.onnx")
        return tmp_path / "free.onnx", said

    return convert


Free = Callable[[bytes], tuple[Path, str | None]]


@pytest.mark.parametrize("weight", [np.float32, np.float16])
def test_several_faces_in_one_run_give_what_each_gives_alone(free: Free, weight: type[np.floating]) -> None:
    data = inswapper(weight=weight)
    path, said = free(data)
    assert said is None
    rng = np.random.default_rng(1)
    targets, sources = rng.random((5, 3, 16, 16), np.float32), rng.random((5, 512), np.float32)
    together = Runtime().session(path).run({"target": targets, "source": sources})[0]
    path.with_name("original.onnx").write_bytes(data)
    original = Runtime().session(path.with_name("original.onnx"))
    for row in range(5):
        alone = original.run({"target": targets[row : row + 1], "source": sources[row : row + 1]})[0]
        np.testing.assert_allclose(together[row : row + 1], alone, atol=1e-5 if weight is np.float32 else 2e-2)


def test_the_same_graph_gives_the_same_bytes(free: Free) -> None:
    first = free(inswapper())[0].read_bytes()
    assert free(inswapper())[0].read_bytes() == first != inswapper()


def test_what_is_no_sample_keeps_its_shape(free: Free) -> None:
    path, said = free(codeformer())
    assert said is None
    inputs = {item.name: item.type.tensor_type.shape.dim[0] for item in onnx.load(path).graph.input}
    assert (inputs["input"].dim_param, inputs["weight"].dim_value) == ("N", 1)
    pictures = np.random.default_rng(2).random((3, 3, 8, 8), np.float32)
    got = Runtime().session(path).run({"input": pictures, "weight": np.array([0.5])})[0]
    np.testing.assert_allclose(got, pictures / 2, rtol=1e-6)


def test_a_graph_with_a_free_batch_stays_as_it_is(free: Free) -> None:
    path, said = free(inswapper("N"))
    assert said is None
    assert path.read_bytes() == inswapper("N")


@pytest.mark.parametrize(
    ("data", "reason"), [(grouped(), "a free batch does not run"), (mixing(), "two samples at once give another")]
)
def test_a_graph_that_cannot_have_it_stays_as_it_is_and_says_why(free: Free, data: bytes, reason: str) -> None:
    path, said = free(data)
    assert said is not None
    assert said.startswith(f"The batch stays 1: {reason}")
    assert path.read_bytes() == data


def test_what_is_no_graph_is_refused(free: Free) -> None:
    with pytest.raises(ModelInvalidError, match="no ONNX model"):
        free(b"\x00" * 64)


@pytest.mark.parametrize("weight", [np.float32, np.float16])
def test_emap_is_the_last_initializer_as_float32(tmp_path: Path, weight: type[np.floating]) -> None:
    (tmp_path / "m").write_bytes(inswapper(weight=weight))
    emap.convert(tmp_path / "m", tmp_path / "emap.npy")
    taken = np.load(tmp_path / "emap.npy", allow_pickle=False)
    assert taken.dtype == np.float32
    np.testing.assert_array_equal(taken, EMAP.astype(weight).astype(np.float32))
    expected = numpy_helper.to_array(onnx.load_from_string(inswapper(weight=weight)).graph.initializer[-1])
    np.testing.assert_array_equal(taken, expected.astype(np.float32))


@pytest.mark.parametrize("last", [EMAP[:256], EMAP.reshape(-1), np.zeros((512, 512, 1))])
def test_a_graph_without_emap_is_refused(tmp_path: Path, last: NDArray[np.generic]) -> None:
    (tmp_path / "m").write_bytes(inswapper(last=last))
    with pytest.raises(ModelInvalidError, match="no emap"):
        emap.convert(tmp_path / "m", tmp_path / "emap.npy")


def test_a_graph_without_any_initializer_is_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    (tmp_path / "m").write_bytes(model(nodes, [value("x", 1, 2)], [value("y", 1, 2)]))
    with pytest.raises(ModelInvalidError, match="no initializer that can be read"):
        emap.convert(tmp_path / "m", tmp_path / "emap.npy")


def test_the_cache_keeps_graph_and_emap_together_and_notes_what_it_made(tmp_path: Path) -> None:
    data = inswapper()
    (tmp_path / "source").write_bytes(data)
    net = FileSpec(
        part="model",
        name="inswapper_128.onnx",
        sources=(f"file:{tmp_path}/source",),
        source_sha256=digest(data),
        source_size=len(data),
        convert=FREE_BATCH,
    )
    derived = FileSpec(part="emap", name="emap.npy", size=1048704, convert=TAKE_EMAP, origin="model")
    found = ModelCache(tmp_path / "cache").ensure(file_set(net, derived, name="inswapper_128"))
    np.testing.assert_array_equal(np.load(found["emap"]), EMAP.astype(np.float32))
    rows = json.loads((found["model"].parent / "manifest.json").read_text())["files"]
    assert rows["inswapper_128.onnx"]["source_sha256"] == digest(data)
    for name, row in rows.items():
        assert row["sha256"] == digest((found["model"].parent / name).read_bytes())
        assert "note" not in row
    assert not (tmp_path / "models.lock.toml").exists(), "the catalogue knows this download"


def test_a_batch_that_stays_is_said_in_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(grouped())
    net = FileSpec(part="model", name="m.onnx", sources=(f"file:{tmp_path}/source",), convert=FREE_BATCH)
    path = ModelCache(tmp_path / "cache").ensure(file_set(net))["model"]
    row = json.loads((path.parent / "manifest.json").read_text())["files"]["m.onnx"]
    assert row["note"].startswith("The batch stays 1")
    assert row["sha256"] == row["source_sha256"] == digest(grouped())
