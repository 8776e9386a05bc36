"""How many threads a pod may use."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import pytest

from shared.vision.runtime import Runtime, _onnxruntime, session_options
from shared.vision.threads import cpu_limit

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("200000 100000", 2),
        ("50000 100000", 1),
        ("150000 100000", 2),
        ("1000 100000", 1),
        ("max 100000", 64),
        ("", 64),
        ("nonsense", 64),
        ("100000 0", 64),
    ],
)
def test_mdl_10_threads_follow_the_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, limit: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    path = tmp_path / "cpu.max"
    path.write_text(text)
    assert cpu_limit(path) == limit


def test_mdl_10_no_cgroup_file_means_the_cores_we_may_run_on(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path / "absent") == CORES


def test_mdl_10_never_more_threads_than_cores(tmp_path: Path) -> None:
    path = tmp_path / "cpu.max"
    path.write_text("99900000 100000")
    assert cpu_limit(path) == CORES


def test_mdl_10_session_threads_are_explicit_and_do_not_spin() -> None:
    options = session_options(_onnxruntime(), 2)
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_mdl_10_opencv_follows() -> None:
    before = cv2.getNumThreads()
    try:
        Runtime(threads=1).session(Path(__file__).parents[2] / "data" / "runtime" / "ok.model")
        assert cv2.getNumThreads() == 1
    finally:
        cv2.setNumThreads(before)
