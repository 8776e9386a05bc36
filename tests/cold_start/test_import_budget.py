"""What a stage may load when it wakes: the light set, and what its own requirements.txt adds, nothing else.

`functions/<stage>/requirements.txt` holds plain pip lines. A stage without numpy is light and has half a second of
CPU for its imports. Every measurement takes a fresh process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
STAGES = sorted(path.parent.name for path in ROOT.glob("functions/*/main.py"))
ONLY_FOR_S3 = "boto3"
LIGHT_SECONDS = 0.5

IMPORT = """
import json, sys, time
before = set(sys.modules)
begun = time.process_time()
import shared.serving.app
from shared.serving import stage
if stage.load({stage!r}, "functions").front_door:
    import shared.serving.front
print(json.dumps({{"seconds": time.process_time() - begun, "modules": sorted(set(sys.modules) - before)}}))
"""
CONFIGURE = """
import json, runpy, sys
before = set(sys.modules)
runpy.run_path("shared/serving/gunicorn.conf.py")
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(path: Path) -> set[str]:
    """Distributions that a requirements file names itself."""
    names: set[str] = set()
    for line in path.read_text().splitlines():
        text = line.partition(" #")[0].strip()
        if text and not text.startswith(("#", "-")):
            names.add(canonicalize_name(Requirement(text).name))
    return names


def with_dependencies(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue.extend(_requires(name))
    return found


@cache
def _requires(name: str) -> list[str]:
    wanted = (Requirement(text) for text in metadata.requires(name) or [])
    return [canonicalize_name(item.name) for item in wanted if item.marker is None or item.marker.evaluate()]


@cache
def owners() -> dict[str, set[str]]:
    """Which distributions a top-level module belongs to."""
    return {
        module: {canonicalize_name(name) for name in names}
        for module, names in metadata.packages_distributions().items()
    }


def strangers(modules: Iterable[str], allowed: set[str]) -> set[str]:
    """Top-level modules of distributions that are not allowed."""
    tops = {module.partition(".")[0] for module in modules}
    return {top for top in tops if top in owners() and not owners()[top] & allowed}


def allowed_for(stage: str) -> set[str]:
    light = listed(ROOT / "shared" / "requirements.txt") - {ONLY_FOR_S3}
    return with_dependencies(light | listed(ROOT / "functions" / stage / "requirements.txt"))


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_loads_only_what_it_lists(stage: str) -> None:
    loaded = json.loads(fresh(IMPORT.format(stage=stage)))
    assert strangers(loaded["modules"], allowed_for(stage)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_light_stage_is_imported_in_half_a_second(stage: str) -> None:
    if "numpy" in listed(ROOT / "functions" / stage / "requirements.txt"):
        pytest.skip("not a light stage")
    fastest = min(json.loads(fresh(IMPORT.format(stage=stage)))["seconds"] for _ in range(3))
    assert fastest <= LIGHT_SECONDS


def test_the_master_imports_nothing_of_a_stage_before_it_forks() -> None:
    loaded = json.loads(fresh(CONFIGURE))
    assert strangers(loaded, set()) == set(), "no third-party code at all"
    assert not any(module.startswith("functions.") for module in loaded)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts its threads by Linux's /proc")
def test_mdl_10_numpy_starts_no_threads_of_its_own() -> None:
    """Its pool spins whenever it is woken: on two cores that doubled the CPU of importing numpy."""
    read = "import runpy, os; runpy.run_path('shared/serving/gunicorn.conf.py')"
    work = "import numpy; numpy.linalg.inv(numpy.eye(300))"
    assert fresh(f"{read}; {work}; print(len(os.listdir('/proc/self/task')))") == "1\n"


def test_the_light_set_and_what_is_heavy_are_told_apart() -> None:
    """The check itself: it sees a heavy module, and it sees through a distribution's name."""
    allowed = with_dependencies(listed(ROOT / "shared" / "requirements.txt") - {ONLY_FOR_S3})
    heavy = ("numpy.core", "cv2", "onnxruntime", "boto3.session", "botocore", "PIL.Image")
    assert strangers([*heavy, "flask.app", "urllib3", "json"], allowed) == {
        *("numpy", "cv2", "onnxruntime", "boto3", "botocore", "PIL")
    }
    assert strangers(["cv2"], allowed | {"opencv-python-headless"}) == set()
