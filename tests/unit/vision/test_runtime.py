"""Sessions: which device, which errors, and never before a fork."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shared.errors import (
    GpuUnavailableError,
    ModelError,
    ModelIncompatibleError,
    ModelIncompleteError,
    ModelInvalidError,
    ModelNotFoundError,
)
from shared.vision.runtime import Device, Runtime
from shared.vision.session import Session

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


def test_inputs_the_model_does_not_take(runtime: Runtime) -> None:
    session = runtime.session(MODELS / "ok.model")
    with pytest.raises(ModelInvalidError):
        session.run({"no such input": np.zeros(1, np.float32)})


def test_mdl_08_importing_every_adapter_loads_no_runtime() -> None:
    code = (
        "import sys\n"
        "import shared.vision.runtime, shared.vision.detector.centerface, shared.vision.landmarker.face_mesh\n"
        "import shared.vision.moderator.open_nsfw, shared.vision.swapper.mesh, shared.vision.finder\n"
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
