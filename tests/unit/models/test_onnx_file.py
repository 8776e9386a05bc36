"""Reading an ONNX file's own facts without `onnx`, proved against `onnx` and against the runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from shared.errors import ModelInvalidError
from shared.models import onnx_file
from shared.models.onnx_file import MAX_IR, MAX_OPSET, read
from tests.unit.models.places import DATA, network

MESSAGES = {
    "model": "ModelProto",
    "training": "TrainingInfoProto",
    "function": "FunctionProto",
    "graph": "GraphProto",
    "node": "NodeProto",
    "attribute": "AttributeProto",
    "sparse": "SparseTensorProto",
    "tensor": "TensorProto",
    "opset": "OperatorSetIdProto",
    "entry": "StringStringEntryProto",
}


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_field_numbers_are_those_of_onnx() -> None:
    """Every way from a model to versions or to a tensor is walked, and no other."""
    names = {message: kind for kind, message in MESSAGES.items()}
    for kind, children in onnx_file._CHILDREN.items():
        fields = getattr(onnx, MESSAGES[kind]).DESCRIPTOR.fields
        expected = {f.number: names[f.message_type.name] for f in fields if f.message_type and _leads(f, names)}
        assert dict(children) == expected, kind


def _leads(field: object, names: dict[str, str]) -> bool:
    name, message = field.name, field.message_type.name  # type: ignore[attr-defined]
    metadata = name in {"metadata_props", "initialization_binding", "update_binding"}
    return message in names and not metadata and not (name == "opset_import" and field.number == 9)  # type: ignore[attr-defined]


def test_facts_of_real_models(model_files: Callable[[str], Mapping[str, Path]]) -> None:
    for name in ("centerface", "face_mesh", "open_nsfw"):
        path = model_files(name)["model"]
        model = onnx.load(path)
        facts = read(path)
        assert (facts.ir, facts.opset) == (model.ir_version, model.opset_import[0].version)
        assert facts.external == frozenset()


def test_weights_outside_are_found_in_every_corner(tmp_path: Path) -> None:
    def outside(location: str) -> onnx.TensorProto:
        tensor = numpy_helper.from_array(onnx.numpy_helper.to_array(helper.make_tensor("t", 1, [1], [1.0])), location)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location
        return tensor

    def constant(location: str) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [location], value=outside(location))

    branch = helper.make_graph([constant("branch")], "b", [], [], [outside("branch weights")])
    graph = helper.make_graph([constant("node")], "g", [], [], [outside("weights")])
    graph.node.append(helper.make_node("If", ["c"], ["o"], then_branch=branch, else_branch=branch))
    function = helper.make_function("d", "f", [], ["function"], [constant("function")], [helper.make_opsetid("", 17)])
    model = helper.make_model(graph, functions=[function], opset_imports=[helper.make_opsetid("", 17)])
    found = read(write(tmp_path / "m.onnx", model.SerializeToString())).external
    assert found == {"weights", "node", "branch", "branch weights", "function"}


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\xff" * 40, network()[:200], (DATA / "lfs_pointer.txt").read_bytes(), b"\x08\x08"],
    ids=["empty", "zero", "garbage", "cut", "text", "no graph"],
)
def test_what_is_no_onnx_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelInvalidError):
        read(write(tmp_path / "m.onnx", data))


def loads(*, ir: int = 8, opset: int = 17) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(network(ir=ir, opset=opset), options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return False
    return True


def test_mdl_05_the_limits_are_the_runtimes_own() -> None:
    assert loads(ir=MAX_IR)
    assert not loads(ir=MAX_IR + 1)
    assert loads(opset=MAX_OPSET)
    assert not loads(opset=MAX_OPSET + 1)
