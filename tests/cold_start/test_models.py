"""Field cases of models in real processes: which device, which process, what is wrong in the cache, how many loads."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from shared.models import catalog
from shared.models.cache import ModelCache
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.services.process import StageProcess, exchange, listening, running
from tests.unit.serving.support import JOB, event, job, until
from tests.unit.vision.test_runtime import has_gpu

pytestmark = pytest.mark.slow
FIELD_CASES = Path(__file__).parents[1] / "data" / "runtime"


@pytest.fixture
def cached(model_cache: ModelCache, model_files: Callable[[str], Mapping[str, Path]]) -> Mapping[str, str]:
    model_files("face_mesh")
    return {"WAKESWAP_MODEL_CACHE": str(model_cache.root)}


def workers(process: StageProcess) -> set[int]:
    return {int(pid) for pid in re.findall(r"Booting worker with pid: (\d+)", process.log())}


def answered(root: Path) -> set[int]:
    """Processes in which a network has run."""
    store = LocalStore(root / "objects")
    infos = store.list(keys.job("demo", JOB) + "seeing/process.").objects
    return {int(info.key.rpartition(".")[2]) for info in infos}


def test_mdl_08_with_preload_every_worker_loads_for_itself_and_answers(
    tmp_path: Path, cached: Mapping[str, str]
) -> None:
    with listening() as listener:
        flags = f"--bind fd://{listener.fileno()} --preload --workers 2"
        process = StageProcess("seeing", tmp_path, listener, **cached, GUNICORN_CMD_ARGS=flags)
        try:
            ends, number = time.monotonic() + 60, 0
            while len(answered(tmp_path)) < 2:
                assert time.monotonic() < ends, process.log()
                number += 1
                with ThreadPoolExecutor(4) as threads:
                    list(threads.map(process.deliver, [event(event_id=f"e-{number}-{n}") for n in range(4)]))
            assert answered(tmp_path) == workers(process)
            assert process.process.pid not in answered(tmp_path)
            maps = Path(f"/proc/{process.process.pid}/maps").read_text()
            assert "onnxruntime" not in maps, "the parent has no runtime, so no session and no device"
            assert all("onnxruntime" in Path(f"/proc/{pid}/maps").read_text() for pid in workers(process))
            assert process.log().count('"model loaded"') == 2
        finally:
            process.kill()


@pytest.mark.skipif(has_gpu(), reason="this machine has CUDA")
def test_mdl_06_a_required_gpu_that_is_missing_keeps_the_stage_from_being_ready(
    tmp_path: Path, cached: Mapping[str, str]
) -> None:
    with running("seeing", tmp_path, **cached, WAKESWAP_DEVICE="gpu") as process:
        until(lambda: process.readiness().code == "gpu_unavailable", 60)
        assert process.readiness().status == 503
        assert process.process.wait(20) == 3


@pytest.mark.skipif(has_gpu(), reason="this machine has CUDA")
def test_mdl_06_a_preferred_gpu_that_is_missing_is_said_by_a_metric(tmp_path: Path, cached: Mapping[str, str]) -> None:
    with running("seeing", tmp_path, **cached, WAKESWAP_DEVICE="gpu-preferred") as process:
        process.wait_ready(60)
        assert process.deliver(event()).status == 200
        metrics = process.call("GET", "/metrics").body.decode()
        assert 'wakeswap_model_load_seconds_count{model="face_mesh",provider="cpu"} 1.0' in metrics


@pytest.mark.parametrize("kind", ["lfs_pointer", "html_page", "s3_error", "zero_bytes"])
def test_mdl_01_readiness_stays_false_and_nothing_of_it_is_left(tmp_path: Path, kind: str) -> None:
    spec = catalog.default().model("face_mesh")
    bucket = LocalStore(tmp_path / "bucket")
    bucket.put(f"models/sha256/{spec.files[0].sha256}", (FIELD_CASES / f"{kind}.model").read_bytes())
    settings = {
        "WAKESWAP_MODEL_CACHE": str(tmp_path / "cache"),
        "WAKESWAP_MODEL_BUCKET": f"file:{bucket.root}",
        "PIP_NO_INDEX": "1",
    }
    with running("seeing", tmp_path, **settings) as process:
        until(lambda: process.readiness().code == "model_invalid", 60)
        answer = process.deliver(event())
        assert (answer.status, answer.code) == (503, "model_invalid")
        said = json.loads(answer.body)["context"]["kind"]
        assert said == {"html_page": "html", "s3_error": "xml", "zero_bytes": "empty"}.get(kind, kind)
        assert process.process.wait(20) == 3
    assert not list((tmp_path / "cache").glob("face_mesh-*"))


def test_cold_02_a_burst_from_zero_loads_each_model_once(tmp_path: Path, cached: Mapping[str, str]) -> None:
    with running("seeing", tmp_path, **cached) as process, ThreadPoolExecutor(50) as threads:

        def persist(number: int) -> set[tuple[int, bool]]:
            seen: set[tuple[int, bool]] = set()
            while (200, False) not in seen:
                answer = process.deliver(event(event_id=f"e-{number}"))
                seen.add((answer.status, "Retry-After" in answer.headers))
                time.sleep(0.05)
            return seen

        assert set().union(*threads.map(persist, range(50))) == {(200, False), (503, True)}
        assert process.log().count('"model loaded"') == 1


def test_cold_01_a_gpu_that_fails_for_good_ends_readiness_and_another_process_takes_over(tmp_path: Path) -> None:
    with (
        running("faulty", tmp_path, WAKESWAP_CONCURRENCY="2") as process,
        ThreadPoolExecutor() as threads,
        closing(process.connect()) as kept,
    ):
        process.wait_ready()
        assert exchange(kept, "GET", "/health/liveness").status == 200
        long = threads.submit(process.deliver, event(job("3"), event_id="e-1"))
        until(lambda: LocalStore(tmp_path / "objects").list(keys.job("demo", JOB) + "faulty/started").objects, 60)
        failed = process.deliver(event(job("fault"), event_id="e-2"))
        assert (failed.status, failed.code) == (503, "gpu_fault")
        assert int(failed.headers["Retry-After"]) > 0
        probe = exchange(kept, "GET", "/health/readiness")
        assert (probe.status, probe.code) == (503, "gpu_fault")
        assert long.result().status == 200, "what was in hand is finished"
        until(lambda: len(workers(process)) == 2, 60)
        process.wait_ready(60)
        assert process.deliver(event(job("0"), event_id="e-3")).status == 200
