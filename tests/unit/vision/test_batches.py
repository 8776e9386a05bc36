"""Many rows in few runs: budgets, fixed batches, and what happens when memory runs out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared.errors import GpuMemoryError, TransientError
from shared.vision.batches import Batches
from tests.standins.graph import FREE, Graph

ROOT = Path(__file__).parents[3]


class Doubling:
    """A session that has memory for `room` rows."""

    def __init__(self, batch: int | None = None, room: int = 1000) -> None:
        self.batch = batch
        self.room = room
        self.runs: list[int] = []

    def run(self, feeds: Mapping[str, NDArray[Any]], outputs: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
        rows = len(feeds["a"])
        self.runs.append(rows)
        if rows > self.room:
            raise GpuMemoryError
        return [feeds["a"] * 2, feeds["b"][:, :1]]


def feeds(rows: int) -> dict[str, NDArray[np.float32]]:
    """Ten numbers a row."""
    a = np.arange(rows * 6, dtype=np.float32).reshape(rows, 2, 3)
    return {"a": a, "b": np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)}


@pytest.mark.parametrize(
    ("rows", "elements", "batch", "runs"),
    [
        (7, 1000, None, [7]),
        (7, 70, None, [7]),
        (7, 69, None, [6, 1]),
        (7, 30, None, [3, 3, 1]),
        (7, 1, None, [1] * 7),
        (3, 1000, 1, [1, 1, 1]),
        (1, 1, None, [1]),
    ],
)
def test_as_many_rows_as_the_budget_or_the_graph_allows(
    rows: int, elements: int, batch: int | None, runs: list[int]
) -> None:
    session = Doubling(batch)
    given = feeds(rows)
    doubled, first = Batches(session, elements).run(given)
    assert session.runs == runs
    np.testing.assert_array_equal(doubled, given["a"] * 2)
    np.testing.assert_array_equal(first, given["b"][:, :1])


def test_out_of_memory_halves_the_batch_for_good() -> None:
    session = Doubling(room=3)
    batches = Batches(session, 1000)
    given = feeds(10)
    doubled, _ = batches.run(given)
    np.testing.assert_array_equal(doubled, given["a"] * 2)
    assert session.runs == [10, 5, 2, 2, 2, 2, 2]
    session.runs.clear()
    batches.run(given)
    assert session.runs == [2] * 5


@pytest.mark.parametrize("batch", [None, 1])
def test_no_memory_for_one_row_is_an_error_that_replaces_the_process(batch: int | None) -> None:
    session = Doubling(batch, room=0)
    with pytest.raises(GpuMemoryError) as caught:
        Batches(session, 1000).run(feeds(4))
    assert session.runs == ([4, 2, 1] if batch is None else [1])
    assert isinstance(caught.value, TransientError)
    assert caught.value.replaces_process
    assert caught.value.status == 503
    assert caught.value.code == "gpu_out_of_memory"


LIMITED = """
import resource, sys, threading
import numpy as np
from pathlib import Path
from shared.errors import GpuMemoryError
from shared.vision.runtime import Runtime
runtime = Runtime(threads=1, batch_elements=10**9)
session = runtime.session(Path(sys.argv[1]))

def run():
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]) * 2**20, most))
    try:
        (out,) = runtime.batches(session).run({"x": np.ones((16, 1024), np.float32)})
        print("done", out.shape, float(out.min()))
    except GpuMemoryError as error:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))  # its end must not need what it has not
        print("gave up:", error.detail)

threading.stack_size(16 * 2**20)  # there from the start: a stack that cannot grow is a segmentation fault
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
ASIDE = {"MALLOC_ARENA_MAX": "1", "MALLOC_TOP_PAD_": str(32 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
"""What is small finds room that was taken before: the runtime's arena leaves nothing, and parts of it end without."""


@pytest.mark.parametrize(
    ("room", "said"), [(1500, "done (16, 1) 1.0"), (200, "done (16, 1) 1.0"), (24, "gave up: No memory to run")]
)
def test_onnxruntimes_own_word_for_out_of_memory_is_understood(room: int, said: str, tmp_path: Path) -> None:
    """A row takes 32 MB in the middle of this graph; the process may have `room` MB more than it has."""
    graph = Graph("hungry")
    rows = graph.reshape(graph.input("x", [FREE, 1024]), [-1, 1024, 1])
    wide = graph.node("Expand", [rows, graph.constant([1, 1024, 8192], np.int64)])
    largest = graph.node("ReduceMax", [wide, graph.constant([1, 2], np.int64)], keepdims=0)
    graph.output(graph.reshape(largest, [-1, 1]), "y", [FREE, 1])
    path = graph.save(tmp_path)
    code = [sys.executable, "-X", "faulthandler", "-c", LIMITED, str(path), str(room)]
    environ = {**os.environ, **ASIDE}
    ran = subprocess.run(code, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(said), ran.stdout + ran.stderr
