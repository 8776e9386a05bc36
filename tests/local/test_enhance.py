"""Under the local platform: a job that asks for it passes through enhance, and no other job wakes it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from shared.models import catalog
from tests.local.machine import ROOT, Machine
from tests.local.test_pipeline import COMPLETED, FACE
from tests.standins import enhancers

NAME = "gfpgan_1.2"
"""An enhancer that any tenant may use and whose digest the catalogue leaves to the first download."""
pytestmark = pytest.mark.slow


def install(folder: Path) -> Path:
    """A stand-in in a model bucket, pinned in a lock file as if it were what the first download gave."""
    (built,) = enhancers.build(folder, enhancers.FAMILIES["gfpgan"], shift=(0.3, 0.3, 0.3), batch=1).values()
    data = built.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    place = folder / "bucket/models/sha256"
    place.mkdir(parents=True)
    shutil.move(built, place / digest)
    lock = folder / "models.lock.toml"
    lock.write_text(f'[models."{NAME}".model]\nsha256 = "{digest}"\nsize = {len(data)}\n')
    return lock


@pytest.fixture
def machine(tmp_path: Path, model_files: Callable[[str], object]) -> Iterator[Machine]:
    assert not catalog.default().model(NAME).files[0].download_sha256
    for name in ("centerface", "face_mesh", "open_nsfw", "pp_ocr_v6_small"):
        model_files(name)
    lock = install(tmp_path / "standin")
    shutil.copytree(ROOT / ".wakeswap/models", tmp_path / "models", copy_function=os.link)

    def change(docs: list[dict[str, Any]]) -> None:
        for doc in docs:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
                doc["data"]["WAKESWAP_MODEL_BUCKET"] = f"file:{lock.parent / 'bucket'}"
                doc["data"]["WAKESWAP_MODEL_LOCK"] = str(lock)

    one = Machine(tmp_path, change, models=tmp_path / "models")
    yield one
    one.down()


def woken(machine: Machine) -> set[str]:
    return {name for name, service in machine.admin("/status")["services"].items() if service["wakes"]}


def picture(machine: Machine, job: str) -> np.ndarray:
    end = machine.outcomes()[job]
    assert end["type"] == COMPLETED, end
    found = cv2.imread(str(machine.objects / end["data"]["image"]["key"]))
    assert found is not None
    return found


def run(machine: Machine, **options: object) -> str:
    """The id of a job with these options, once it has ended."""
    known, name = set(machine.outcomes()), f"{len(machine.outcomes())}.job.json"
    job = {"source": "one_face.jpg", "target": "same_face_twice.jpg", "options": {"format": "png", **options}}
    (machine.inbox / f".{name}").write_text(json.dumps(job))
    (machine.inbox / f".{name}").rename(machine.inbox / name)
    machine.until(lambda: len(machine.outcomes()) > len(known), 90)
    (new,) = set(machine.outcomes()) - known
    return new


@pytest.mark.timeout(300)
def test_enhance_wakes_for_jobs_that_ask_for_it_and_for_no_other(machine: Machine) -> None:
    for name in ("one_face.jpg", "same_face_twice.jpg"):
        shutil.copy(FACE / name, machine.inbox / name)
    machine.up()
    plain = run(machine)
    machine.until(lambda: bool(machine.admin("/status")["idle"]), 30)
    assert "enhance" not in woken(machine)
    better = run(machine, enhancer=NAME)
    machine.until(lambda: bool(machine.admin("/status")["idle"]), 30)
    assert "enhance" in woken(machine)
    folders = [machine.objects / "tenants/demo/jobs" / job for job in (plain, better)]
    without, through = ({path.name for path in folder.iterdir() if path.is_dir()} for folder in folders)
    assert through - without == {"enhance"}
    gain = picture(machine, better).astype(int) - picture(machine, plain)
    assert 15 < np.percentile(gain, 99) < 40, "0.8 of 38 levels where the faces are"
    assert (gain == 0).mean() > 0.3, "and nothing elsewhere"
    assert not [queue for queue in machine.admin("/status")["queues"].values() if queue["dead"]]
