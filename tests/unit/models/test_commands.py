"""`python -m infra.models` as it is started: what it lists, fetches, verifies, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from shared.models import catalog
from shared.models.cache import ModelCache
from shared.storage.local import LocalStore
from tests.unit.models.places import digest, network

ROOT = Path(__file__).resolve().parents[3]

Models = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(tmp_path: Path, model_cache: ModelCache) -> Mapping[str, str]:
    """An empty cache, and a bucket with the small face mesh in it."""
    (file,) = catalog.default().model("face_mesh").files
    path = model_cache.ensure(catalog.default().model("face_mesh"))["model"]
    LocalStore(tmp_path / "bucket").upload(path, f"models/sha256/{file.sha256}")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("WAKESWAP_")},
        "WAKESWAP_MODEL_CACHE": str(tmp_path / "cache"),
        "WAKESWAP_MODEL_BUCKET": f"file:{tmp_path}/bucket",
        "PIP_NO_INDEX": "1",
    }


@pytest.fixture
def models(environment: Mapping[str, str]) -> Models:
    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "infra.models", *arguments]
        env = {**environment, **more}
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_list_tells_every_model(models: Models) -> None:
    lines = [line.split("\t") for line in models("list").stdout.splitlines()]
    assert lines[0] == ["name", "role", "commercial", "licence", "size", "cached"]
    rows = {line[0]: line[1:] for line in lines[1:]}
    assert rows.keys() == catalog.default().models.keys()
    assert rows["face_mesh"] == ["landmarker", "yes", "Apache-2.0", "2.5 MB", "no"]
    assert rows["ghost_1_256"][1] == "no", "with what it uses"
    assert rows["scrfd"][3] == "?"


def test_what_was_fetched_is_listed_shown_and_verified(tmp_path: Path, models: Models) -> None:
    fetched = models("fetch", "landmarker", "--json")
    assert fetched.returncode == 0
    path = json.loads(fetched.stdout)["models"]["face_mesh"]["model"]
    assert Path(path).is_file()
    assert [json.loads(line)["event"] for line in fetched.stderr.splitlines()] == ["fetch", "ready"]
    assert models("fetch", "face_mesh").stdout == path + "\n"
    listed = json.loads(models("list", "--json").stdout)["models"]
    assert [row["name"] for row in listed if row["cached"]] == ["face_mesh", "mesh"]
    shown = json.loads(models("show", "face_mesh", "--json").stdout)
    assert (shown["cached"], shown["files"]["model"]["path"]) == (True, path)
    verified = models("verify")
    assert (verified.returncode, verified.stdout) == (0, "1 files checked, 0 bad\n")


def test_show_tells_the_chain_and_the_addresses(models: Models) -> None:
    shown = json.loads(models("show", "inswapper_128", "--json").stdout)
    assert shown["licences_of_what_it_uses"] == {"arcface_w600k_r50": "non-commercial"}
    assert shown["files"]["model"]["pinned_by"] == "catalogue"
    assert shown["files"]["emap"]["made_from"] == "model"
    assert all(source.startswith("https://") for source in shown["files"]["model"]["sources"])
    text = models("show", "inswapper_128").stdout
    assert "  embedder: arcface_w600k_r50\n" in text
    assert "  template: arcface_128\n" in text


@pytest.mark.parametrize("damage", ["bytes", "gone", "manifest"])
def test_verify_names_the_file_that_changed(tmp_path: Path, models: Models, damage: str) -> None:
    path = Path(models("fetch", "face_mesh").stdout.strip())
    if damage == "bytes":
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")  # same size: no hit would notice
    elif damage == "gone":
        path.unlink()
    else:
        (path.parent / "manifest.json").write_text("{")
    state, name = {
        "bytes": ("corrupt", "face_mesh.onnx"),
        "gone": ("missing", "face_mesh.onnx"),
        "manifest": ("corrupt", "manifest.json"),
    }[damage]
    done = models("verify")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == f"{state}: {path.parent.name}/{name}"
    bad = json.loads(models("verify", "--json").stdout)["bad"]
    assert bad == [{"folder": path.parent.name, "file": name, "state": state}]


def test_verify_holds_the_cache_against_the_digests_that_are_known_now(tmp_path: Path, models: Models) -> None:
    """A cache that was filled with other bytes, manifest and all, is not as pinned."""
    path = Path(models("fetch", "face_mesh").stdout.strip())
    path.write_bytes(b"other")
    manifest = path.parent / "manifest.json"
    rows = json.loads(manifest.read_text())
    rows["files"]["face_mesh.onnx"] = {"size": 5, "sha256": digest(b"other")}
    manifest.write_text(json.dumps(rows))
    assert models("verify").stdout.splitlines()[0] == f"not as pinned: {path.parent.name}/face_mesh.onnx"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "usage"),
        (("fetch",), 2, "usage"),
        (("fetch", "nope"), 1, "model_not_found: No model is called 'nope'"),
        (("show", "nope"), 1, "model_not_found"),
        (("fetch", "open_nsfw"), 1, "open_nsfw.onnx could not be fetched. The bucket does not have it (models/sha256/"),
    ],
)
def test_wrong_names_and_what_cannot_be_had(models: Models, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = models(*arguments)
    assert done.returncode == code
    assert said in done.stderr


def test_wrong_settings_are_exit_code_2(tmp_path: Path, models: Models) -> None:
    assert models("list", WAKESWAP_DETECTOR="nope").returncode == 2
    (tmp_path / "lock").write_text("[")
    done = models("show", "scrfd", WAKESWAP_MODEL_LOCK=str(tmp_path / "lock"))
    assert (done.returncode, done.stderr.split(":")[0]) == (2, "config_error")


def test_on_a_terminal_fetch_draws_bars_and_list_a_table(environment: Mapping[str, str]) -> None:
    assert b"face_mesh: ready" in drawn(environment, "fetch", "face_mesh")
    assert "─".encode() in drawn(environment, "list")


def drawn(environment: Mapping[str, str], *arguments: str) -> bytes:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "infra.models", *arguments]
    done = subprocess.Popen(command, cwd=ROOT, env={**environment, "TERM": "xterm"}, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how a pseudo-terminal says that the other end is closed
        pass
    finally:
        os.close(ours)
    assert done.wait(60) == 0
    return shown


def test_a_model_goes_through_the_bucket_and_back(tmp_path: Path, models: Models) -> None:
    """push, promote, list, pull, verify, drop and gc as an operator types them; two versions, one channel."""
    (tmp_path / "other.onnx").write_bytes(network())
    assert models("push", "face_mesh", "1").stdout.startswith("pushed face_mesh@1, index ")
    assert models("push", "face_mesh", "2", "--file", f"model={tmp_path}/other.onnx").returncode == 0
    assert models("promote", "face_mesh", "2", "stable").stdout == "promoted face_mesh@2, channel stable\n"
    listed = json.loads(models("list", "--bucket", "--json").stdout)["versions"]
    assert [(row["version"], row["channels"]) for row in listed] == [("1", []), ("2", ["stable"])]
    pulled = models("pull", "face_mesh@stable")
    assert Path(pulled.stdout.strip()).read_bytes() == network()
    fetched = models("fetch", "face_mesh", WAKESWAP_MODEL_TAG="stable")
    assert fetched.stdout == pulled.stdout
    models("promote", "face_mesh", "1", "stable")
    assert models("fetch", "face_mesh", WAKESWAP_MODEL_TAG="stable").stdout != pulled.stdout
    assert models("verify", "--bucket").stdout == "checked 2, bad 0\n"
    assert models("drop", "face_mesh", "1").returncode == 1, "a channel stands for it"
    assert models("drop", "face_mesh", "2").returncode == 0
    dry = models("gc", "--grace-days", "0", "--dry-run").stdout
    assert f"would remove: models/sha256/{digest(network())} ({len(network())} bytes)\n" in dry
    assert "objects 1" in models("gc", "--grace-days", "0").stdout
    assert models("gc", "--grace-days", "0").stdout == "objects 0, bytes 0, removed True\n"
    (file,) = catalog.default().model("face_mesh").files
    (tmp_path / "bucket/models/sha256" / file.sha256).write_bytes(b"rotten")
    bad = models("verify", "--bucket")
    assert (bad.returncode, bad.stdout.splitlines()[0]) == (1, "corrupt: face_mesh@1: face_mesh.onnx")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("pull", "face_mesh@none"), 1, "model_not_found: The bucket has no face_mesh@none"),
        (("pull", "face_mesh"), 1, "model_invalid"),
        (("promote", "face_mesh", "none", "stable"), 1, "The bucket has no face_mesh@none"),
        (("push", "face_mesh", "../x"), 1, "'../x' is not a valid version"),
        (("push", "face_mesh", "1", "--file", "model=/none"), 2, "is not of the form part=file"),
        (("push", "face_mesh", "1", "--tenant", "A/../b"), 1, "A tenant name is a DNS label"),
    ],
)
def test_what_the_bucket_cannot_do_is_said(models: Models, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = models(*arguments)
    assert done.returncode == code
    assert said in done.stderr


def test_without_a_bucket_there_is_nothing_to_push_to(models: Models) -> None:
    done = models("gc", WAKESWAP_MODEL_BUCKET="")
    assert (done.returncode, done.stderr) == (2, "config_error: WAKESWAP_MODEL_BUCKET names no bucket.\n")
