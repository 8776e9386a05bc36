"""Optimised graphs in the cache: the same numbers, made once, used for nothing but what they were made for."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared.errors import ModelInvalidError
from shared.models import build
from shared.models.cache import ModelCache
from shared.models.derived import DerivedGraphs
from shared.models.locks import locked
from shared.models.spec import FileSpec
from shared.settings import ModelSettings
from shared.vision import graphs
from shared.vision.graphs import GRAPH, WEIGHTS
from shared.vision.runtime import Runtime
from shared.vision.session import Session
from tests.standins.graph import FREE, Graph
from tests.unit.models.places import file_set

ROOT = Path(__file__).resolve().parents[3]
FEEDS = {"x": np.linspace(-1, 1, 3 * 32 * 32, dtype=np.float32).reshape(1, 3, 32, 32)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small network in a cache; its weights are over a megabyte."""
    return cached(tmp_path, seed=0)


def cached(folder: Path, seed: int, name: str = "net") -> Path:
    graph = Graph("net", seed)
    value = graph.node("Relu", [graph.conv(graph.input("x", [FREE, 3, 32, 32]), 3, 256, 3)])
    graph.output(graph.conv(value, 256, 128, 3), "y", [FREE, 128, 32, 32])
    data = graph.save(folder / "origin", f"{name}{seed}.onnx")
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    file = FileSpec("model", "net.onnx", data.stat().st_size, digest, (f"file:{data}",))
    return ModelCache(folder / "cache").ensure(file_set(file, name=name))["model"]


def runtime(model: Path) -> Runtime:
    return Runtime(threads=1, graphs=DerivedGraphs(model.parent.parent))


def kept(model: Path) -> list[Path]:
    return sorted(model.parent.parent.glob("derived-*"))


def mapped(session: Session) -> bool:
    return "derived-" in session._session._model_path


def output(session: Session) -> np.ndarray:
    return session.run(FEEDS)[0]


def test_the_first_load_keeps_the_graph_and_the_next_maps_it(model: Path) -> None:
    plain = Runtime(threads=1).session(model)
    first, second = runtime(model).session(model), runtime(model).session(model)
    assert (mapped(first), mapped(second)) == (False, True)
    assert first.inputs == second.inputs == plain.inputs
    assert second.outputs == plain.outputs
    assert second.batch is None
    np.testing.assert_array_equal(output(second), output(plain))
    np.testing.assert_array_equal(output(first), output(plain))
    assert {path.name for path in kept(model)[0].iterdir()} == {GRAPH, WEIGHTS, "made_for.json", "manifest.json"}


@pytest.mark.parametrize("name", [GRAPH, WEIGHTS])
@pytest.mark.parametrize("damage", ["truncated", "rewritten", "missing"])
def test_a_damaged_graph_is_never_loaded_and_made_again(model: Path, name: str, damage: str) -> None:
    expected = output(runtime(model).session(model))
    file = kept(model)[0] / name
    data = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(data[: len(data) // 2] if damage == "truncated" else bytes(len(data)))
    again = runtime(model).session(model)
    assert not mapped(again)
    np.testing.assert_array_equal(output(again), expected)
    assert mapped(runtime(model).session(model))
    assert len(kept(model)) == 1


def test_bytes_that_were_changed_without_a_trace_are_found_when_they_do_not_load(model: Path) -> None:
    expected = output(runtime(model).session(model))
    file = kept(model)[0] / GRAPH
    before = file.stat()
    file.write_bytes(b"\xff" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = runtime(model).session(model)
    assert not mapped(again)
    np.testing.assert_array_equal(output(again), expected)


@pytest.mark.parametrize("fact", ["runtime", "provider", "machine", "device"])
def test_a_graph_made_for_something_else_is_not_found(model: Path, fact: str) -> None:
    here = graphs.facts("1.0", "CPUExecutionProvider")
    assert here is not None
    keeper = DerivedGraphs(model.parent.parent)
    with keeper.keep(model, here) as folder:
        assert folder is not None
        (folder / GRAPH).write_bytes(b"graph")
        (folder / WEIGHTS).write_bytes(b"weights")
    assert keeper.find(model, here) is not None
    assert keeper.find(model, {**here, fact: "another"}) is None
    (kept(model)[0] / "made_for.json").write_text("{}")
    assert keeper.find(model, here) is None


def test_two_models_never_share_a_graph(model: Path, tmp_path: Path) -> None:
    other = cached(tmp_path, seed=1, name="other")
    expected = [output(Runtime(threads=1).session(path)) for path in (model, other)]
    for _ in range(2):
        for path, values in zip((model, other), expected, strict=True):
            np.testing.assert_array_equal(output(runtime(path).session(path)), values)
    assert len(kept(model)) == 2


def test_a_model_that_was_touched_is_loaded_as_it_is(model: Path) -> None:
    runtime(model).session(model)
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(ModelInvalidError):
        runtime(model).session(model)


def test_one_process_makes_it_and_the_others_do_not_wait(model: Path) -> None:
    facts = {"runtime": "1"}
    keeper = DerivedGraphs(model.parent.parent)
    with keeper.keep(model, facts) as first, keeper.keep(model, facts) as second:
        assert first is not None
        assert second is None
        (first / GRAPH).write_bytes(b"graph")
        (first / WEIGHTS).write_bytes(b"weights")
    assert keeper.find(model, facts) is not None


def test_what_a_failed_making_left_is_gone(model: Path) -> None:
    with pytest.raises(OSError, match="broken"), DerivedGraphs(model.parent.parent).keep(model, {"runtime": "1"}):
        raise OSError("broken")
    assert kept(model) == []
    assert list((model.parent.parent / ".tmp").iterdir()) == []


def test_files_outside_a_cache_and_small_ones_are_loaded_as_they_are(model: Path) -> None:
    facts = {"runtime": "1"}
    with DerivedGraphs(model.parent.parent, smallest=1 << 30).keep(model, facts) as folder:
        assert folder is None
    loose = model.parent.parent / "loose" / model.name
    loose.parent.mkdir()
    loose.write_bytes(model.read_bytes())
    with DerivedGraphs(model.parent.parent).keep(loose, facts) as folder:
        assert folder is None


def test_nothing_is_kept_of_a_provider_that_keeps_its_own_or_a_gpu_that_nobody_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(graphs, "GPUS", tmp_path)
    assert graphs.facts("1", "TensorrtExecutionProvider") is None
    assert graphs.facts("1", "CUDAExecutionProvider") is None
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "information").write_text("Model: \t NVIDIA H200\nIRQ: 7\n")
    found = graphs.facts("1", "CUDAExecutionProvider")
    assert found is not None
    assert found["device"] == "NVIDIA H200"


def test_a_read_only_cache_costs_nothing_but_the_gain(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    assert not mapped(runtime(model).session(model))
    assert kept(model) == []


def test_the_lock_is_the_caches_own(model: Path) -> None:
    facts = {"runtime": "1"}
    keeper = DerivedGraphs(model.parent.parent)
    with keeper.keep(model, facts) as folder:
        assert folder is not None
        name = folder.name
    with locked(model.parent.parent / ".locks" / name, lambda: None), keeper.keep(model, facts) as folder:
        assert folder is None


@pytest.mark.parametrize(("graph", "number"), [("mapped", 1), ("plain", 0)])
def test_the_init_step_can_make_it_unless_the_setting_says_plain(model: Path, graph: str, number: int) -> None:
    build.prepare(ModelSettings(cache=model.parent.parent, graph=graph), {"model": model, "table": model.parent})
    assert len(kept(model)) == number


def test_the_init_step_imports_no_runtime_for_graphs_that_are_there(model: Path) -> None:
    runtime(model).session(model)
    code = (
        "import sys; from pathlib import Path\n"
        "from shared.models import build; from shared.settings import ModelSettings\n"
        f"model = Path({str(model)!r})\n"
        "build.prepare(ModelSettings(cache=model.parent.parent), {'model': model})\n"
        "sys.exit('onnxruntime' in sys.modules or 'numpy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False).returncode == 0


@pytest.mark.parametrize(
    "settings", [{"device": "gpu"}, {"device": "gpu-preferred"}, {"device": "gpu", "tensorrt": True}]
)
def test_the_init_step_makes_nothing_for_a_device_that_is_not_there(model: Path, settings: dict[str, Any]) -> None:
    build.prepare(ModelSettings(cache=model.parent.parent, **settings), {"model": model})
    assert kept(model) == []


def test_a_model_that_went_meanwhile_is_no_error_of_the_init_step(model: Path) -> None:
    model.unlink()
    build.prepare(ModelSettings(cache=model.parent.parent), {"model": model})
    assert kept(model) == []


def test_weights_are_read_before_a_run_needs_them(tmp_path: Path) -> None:
    path = tmp_path / WEIGHTS
    path.write_bytes(bytes(8 << 20))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if in_memory(file.fileno(), 4 << 20):
            pytest.skip("this file system keeps its pages")
        graphs.read_ahead(path)
        ends = time.monotonic() + 20
        while not in_memory(file.fileno(), 4 << 20):
            assert time.monotonic() < ends, "nobody read it"
            time.sleep(0.01)


def in_memory(handle: int, offset: int) -> bool:
    try:
        return os.preadv(handle, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False


@pytest.mark.slow
def test_a_load_takes_less_memory_than_its_file(tmp_path: Path) -> None:
    """In a fresh process, from after the imports to after the load: VmHWM."""
    graph = Graph("net")
    graph.output(
        graph.conv(graph.conv(graph.input("x", [1, 1024, 8, 8]), 1024, 1024, 3), 1024, 1024, 3), "y", [1, 1024, 8, 8]
    )
    data = graph.save(tmp_path / "origin")
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    file = FileSpec("model", "net.onnx", data.stat().st_size, digest, (f"file:{data}",))
    model = ModelCache(tmp_path / "cache").ensure(file_set(file))["model"]
    runtime(model).session(model)
    code = (
        "import cv2, onnxruntime, pathlib, sys\n"
        "from shared.models.derived import DerivedGraphs; from shared.vision.runtime import Runtime\n"
        "def peak(): return int(pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) * 1024\n"
        f"model, before = pathlib.Path({str(model)!r}), peak()\n"
        "graphs = None if sys.argv[1:] else DerivedGraphs(model.parent.parent)\n"
        "session = Runtime(threads=1, graphs=graphs).session(model)\n"
        "print(peak() - before)\n"
    )
    mapped, plain = (
        int(
            subprocess.run(
                [sys.executable, "-c", code, *more], cwd=ROOT, timeout=90, check=True, capture_output=True
            ).stdout
        )
        for more in ([], ["plain"])
    )
    assert mapped < 1.3 * model.stat().st_size < plain
