"""Sessions: which device, which errors, and never before a fork."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state

from shared.errors import (
    ConfigError,
    GpuFaultError,
    GpuMemoryError,
    GpuUnavailableError,
    ModelError,
    ModelIncompatibleError,
    ModelIncompleteError,
    ModelInvalidError,
    ModelNotFoundError,
)
from shared.vision.binding import Bindings
from shared.vision.runtime import CPU_ELEMENTS, Device, Runtime
from shared.vision.session import Port, Session
from tests.standins.graph import FREE, Graph

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "tests" / "data" / "runtime"


def has_gpu() -> bool:
    import onnxruntime

    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


def test_a_session_runs_and_says_where(runtime: Runtime) -> None:
    session = runtime.session(MODELS / "ok.model")
    assert session.provider == "cpu"


@pytest.mark.skipif(has_gpu(), reason="this machine has CUDA")
def test_mdl_06_a_gpu_that_is_required_and_missing_is_an_error() -> None:
    with pytest.raises(GpuUnavailableError) as caught:
        Runtime(Device.GPU, threads=1).session(MODELS / "ok.model")
    assert caught.value.status == 503
    assert caught.value.context == {"wanted": "CUDAExecutionProvider", "got": "CPUExecutionProvider"}


@pytest.mark.skipif(has_gpu(), reason="this machine has CUDA")
def test_mdl_06_a_gpu_that_is_preferred_and_missing_becomes_the_cpu() -> None:
    assert Runtime("gpu-preferred", threads=1).session(MODELS / "ok.model").provider == "cpu"


@pytest.mark.parametrize("name", ["html_page", "lfs_pointer", "s3_error", "truncated", "zero_bytes"])
def test_mdl_01_what_is_no_model(runtime: Runtime, name: str) -> None:
    with pytest.raises(ModelInvalidError) as caught:
        runtime.session(MODELS / f"{name}.model")
    assert str(MODELS) not in caught.value.detail.split(":", 1)[0]
    assert name in caught.value.detail


@pytest.mark.parametrize("name", ["opset_99", "ir_99"])
def test_mdl_05_too_new_names_both_numbers(runtime: Runtime, name: str) -> None:
    with pytest.raises(ModelIncompatibleError) as caught:
        runtime.session(MODELS / f"{name}.model")
    assert caught.value.context["model"] == 99
    assert isinstance(caught.value.context["runtime"], int)
    assert caught.value.context["runtime"] > 8


def test_mdl_05_missing_weights_name_the_file(runtime: Runtime) -> None:
    with pytest.raises(ModelIncompleteError) as caught:
        runtime.session(MODELS / "external_data_missing.model")
    assert caught.value.context == {"file": "weights.bin"}


def test_mdl_05_weights_outside_the_folder_are_refused(runtime: Runtime) -> None:
    with pytest.raises(ModelInvalidError):
        runtime.session(MODELS / "external_data_traversal.model")


def test_a_missing_file(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        runtime.session(tmp_path / "none.model")


class Failing:
    """A session whose runs fail as onnxruntime's do."""

    def __init__(self, session: Any, error: Exception) -> None:
        self._session, self._error = session, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        raise self._error


def ort_error(kind: str, text: str) -> Exception:
    found: Exception = getattr(onnxruntime_pybind11_state, kind)(text)
    return found


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ort_error("RuntimeException", "Failed to allocate memory for requested buffer of size 3"), GpuMemoryError),
        (RuntimeError("CUDA failure 2: out of memory ; GPU=0"), GpuMemoryError),
        (MemoryError("std::bad_alloc"), GpuMemoryError),
        (ort_error("Fail", "CUDA failure 700: an illegal memory access was encountered ; GPU=0"), GpuFaultError),
        (RuntimeError("CUDNN failure 8: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0"), GpuFaultError),
        (ort_error("EPFail", "provider"), GpuFaultError),
        (ort_error("DeviceReset", ""), GpuFaultError),
        (ort_error("InvalidArgument", "Got invalid dimensions for input"), ModelInvalidError),
        (ort_error("Fail", ""), ModelInvalidError),
    ],
)
def test_cold_01_a_failing_device_is_told_from_a_wrong_model(error: Exception, expected: type[ModelError]) -> None:
    import onnxruntime

    real = onnxruntime.InferenceSession(str(MODELS / "ok.model"), providers=["CPUExecutionProvider"])
    session = Session(Failing(real, error), MODELS / "ok.model", (type(error),), onnxruntime.OrtValue)
    with pytest.raises(ModelError) as caught:
        session.run({"x": np.ones((1, 16), np.float32)})
    assert type(caught.value) is expected
    assert expected.replaces_process == (expected is not ModelInvalidError)


def test_no_class_of_onnxruntimes_errors_gets_out(runtime: Runtime) -> None:
    session = runtime.session(MODELS / "ok.model")
    kinds = [kind for kind in vars(onnxruntime_pybind11_state).values() if isinstance(kind, type)]
    kinds = [kind for kind in kinds if issubclass(kind, Exception)]
    assert len(kinds) >= 12
    for kind in kinds:
        with pytest.raises(ModelError):
            Session(Failing(session._session, kind("x")), MODELS / "ok.model", session._errors, None).run({})


def test_inputs_the_model_does_not_take(runtime: Runtime) -> None:
    session = runtime.session(MODELS / "ok.model")
    with pytest.raises(ModelInvalidError):
        session.run({"no such input": np.zeros(1, np.float32)})


@pytest.mark.skipif(has_gpu(), reason="this machine has CUDA")
def test_mdl_06_tensorrt_that_is_asked_for_and_missing_is_an_error() -> None:
    with pytest.raises(GpuUnavailableError) as caught:
        Runtime("gpu", threads=1, tensorrt=True).session(MODELS / "ok.model")
    assert caught.value.context == {"wanted": "TensorrtExecutionProvider", "got": "CPUExecutionProvider"}


@pytest.mark.parametrize("device", ["cpu", "gpu-preferred"])
def test_tensorrt_needs_a_required_gpu(device: str) -> None:
    with pytest.raises(ConfigError, match="TensorRT"):
        Runtime(device, tensorrt=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_mdl_05_half_precision_takes_any_floats_and_gives_float32(runtime: Runtime, dtype: type[np.floating]) -> None:
    session = runtime.session(MODELS / "fp16.model")
    assert session.inputs == {"x": Port("x", ("n", 16), np.float16)}
    (found,) = session.run({"x": np.ones((3, 16), dtype)})
    assert found.dtype == np.float32
    assert found.shape == (3, 16)


@pytest.mark.parametrize(("batch", "fixed"), [(FREE, None), (1, 1), (4, 4)])
def test_a_session_tells_whether_its_batch_is_fixed(
    batch: int | str, fixed: int | None, runtime: Runtime, tmp_path: Path
) -> None:
    session = runtime.session(two_outputs(tmp_path, batch))
    assert session.batch == fixed
    assert list(session.outputs) == ["double", "found"]
    assert session.inputs["a"].shape == (batch, 4)


def test_the_budget_is_the_devices_unless_one_is_set(tmp_path: Path) -> None:
    path = two_outputs(tmp_path)
    for runtime, elements in ((Runtime(threads=1), CPU_ELEMENTS), (Runtime(threads=1, batch_elements=70), 70)):
        assert runtime.batches(runtime.session(path))._elements == elements


def two_outputs(folder: Path, batch: int | str = FREE) -> Path:
    """Of the input's shape, and of a shape that only the values tell."""
    graph = Graph("two")
    a = graph.input("a", [batch, 4])
    graph.output(graph.node("Mul", [a, graph.constant(2.0)]), "double", [batch, 4])
    graph.output(graph.node("NonZero", [a]), "found", [2, "count"])
    return graph.save(folder)


def test_bound_memory_gives_what_a_plain_run_gives(runtime: Runtime, tmp_path: Path) -> None:
    """The GPU's way of running, on the CPU: other values, other shapes, fewer outputs; results stay what they were."""
    import onnxruntime

    session = runtime.session(two_outputs(tmp_path))
    bound = Bindings(session._session, onnxruntime.OrtValue, "cpu")
    random = np.random.default_rng(0)
    earlier = []
    for rows in (3, 3, 1, 7, 3, 2, 5, 6, 3):
        values = np.maximum(random.standard_normal((rows, 4)).astype(np.float32), 0)
        kept = values.copy()
        outputs = ["double"] if rows == 7 else ["found", "double"]
        found = bound.run({"a": values}, outputs)
        for got, expected in zip(found, session.run({"a": values}, outputs), strict=True):
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(values, kept)
        earlier.append((found[-1], kept * 2))
    for got, expected in earlier:
        np.testing.assert_array_equal(got, expected)


def test_threads_do_not_share_bound_memory(runtime: Runtime, tmp_path: Path) -> None:
    import onnxruntime

    bound = Bindings(runtime.session(two_outputs(tmp_path))._session, onnxruntime.OrtValue, "cpu")

    def work(number: int) -> bool:
        values = np.full((50, 4), number + 1, np.float32)
        return all((bound.run({"a": values}, ["double"])[0] == 2 * values).all() for _ in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))


def test_mdl_08_importing_every_adapter_loads_no_runtime() -> None:
    code = (
        "import sys\n"
        "import shared.vision.runtime, shared.vision.detector.centerface, shared.vision.landmarker.face_mesh\n"
        "import shared.vision.moderator.open_nsfw, shared.vision.swapper.mesh, shared.vision.finder\n"
        "import shared.vision.embedder.arcface, shared.vision.swapper.inswapper, shared.vision.swapper.converted\n"
        "import shared.vision.swapper.image_source, shared.vision.swapper.embedding\n"
        "shared.vision.runtime.Runtime()\n"
        "sys.exit('onnxruntime' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode == 0


def test_mdl_08_a_session_made_before_a_fork_says_so(runtime: Runtime) -> None:
    session = runtime.session(MODELS / "ok.model")
    session._pid -= 1  # as a forked child sees it; forking this process for real could hang it
    with pytest.raises(ModelError, match="before a fork"):
        session.run({})


@pytest.mark.slow
def test_mdl_08_every_new_process_makes_its_own_session() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        assert pool.map(_provider, range(2)) == ["cpu", "cpu"]


def _provider(_: int) -> str:
    session: Session = Runtime(threads=1).session(MODELS / "ok.model")
    return session.provider


def test_what_one_user_loads_says_where_it_runs(runtime: Runtime) -> None:
    first, second = runtime.apart(), runtime.apart()
    first.session(MODELS / "ok.model")
    first._providers_got.add("cuda")
    second._providers_got.add("cuda")
    assert (first.provider, second.provider, runtime.provider) == ("cpu", "cuda", "cpu"), "the slowest counts"
