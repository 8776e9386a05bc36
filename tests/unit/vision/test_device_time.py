"""How long models ran for one event: whoever's threads, whatever the end, and nothing of another event."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from shared.errors import ModelInvalidError
from shared.serving import background
from shared.vision import device_time
from shared.vision.session import Session


class Network:
    """Takes one number x and runs for x milliseconds; a negative one is a fault."""

    class Port:
        def __init__(self, name: str) -> None:
            self.name, self.shape, self.type = name, (1,), "tensor(float)"

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def get_providers(self) -> list[str]:
        return [self._provider]

    def get_inputs(self) -> list[Port]:
        return [self.Port("x")]

    def get_outputs(self) -> list[Port]:
        return [self.Port("y")]

    def run(self, names: list[str], feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        milliseconds = float(feeds["x"][0])
        if milliseconds < 0:
            raise ValueError("a bad input")
        time.sleep(milliseconds / 1000)
        return [feeds["x"]]


def session() -> Callable[[float], object]:
    made = Session(Network("CPUExecutionProvider"), Path("network.onnx"), (), onnxruntime.OrtValue)
    return lambda milliseconds: made.run({"x": np.float32([milliseconds])})


def test_runs_of_one_event_add_up_and_nothing_else_does() -> None:
    run = session()
    run(30)  # before any event: the warm-up
    started = time.perf_counter()
    with device_time.measured() as first:
        run(20)
        beside = time.perf_counter()
        time.sleep(0.05)  # work beside the device
        beside = time.perf_counter() - beside
        run(20)
    whole = time.perf_counter() - started
    with device_time.measured() as second:
        pass
    assert first.seconds().keys() == {"cpu"}
    assert 0.04 <= first.seconds()["cpu"] <= whole - beside + 1e-6
    assert second.seconds() == {}


def test_a_run_that_fails_took_its_time_too() -> None:
    run = session()
    with device_time.measured() as total:
        with pytest.raises(ModelInvalidError):
            run(-1)
        assert total.seconds()["cpu"] > 0


def test_events_side_by_side_keep_their_own_however_many_threads_work() -> None:
    together = threading.Barrier(12)

    def part(name: str) -> None:
        with device_time.running(name):
            together.wait(60)

    def event(name: str) -> dict[str, float]:
        with device_time.measured() as total:
            for done in [background.start("part", lambda: part(name)) for _ in range(4)]:
                done.result()
        return total.seconds()

    running = {name: background.start("event", lambda name=name: event(name)) for name in ("a", "b", "c")}  # type: ignore[misc]
    assert {name: list(done.result()) for name, done in running.items()} == {name: [name] for name in "abc"}


def test_each_provider_has_its_own_sum() -> None:
    total = device_time.DeviceTime()
    threads = [threading.Thread(target=total.add, args=(name, 0.001)) for name in ("cpu", "cuda") * 50]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.seconds() == {"cpu": 0.05, "cuda": 0.05}


def test_measuring_loads_nothing_that_a_light_stage_would_not() -> None:
    code = "import sys, shared.vision.device_time; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ}).returncode == 0
