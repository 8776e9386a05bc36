"""Models through a real S3 server, from a push to a stage that is ready: versions, graphs, two nodes, two tenants."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import onnx
import pytest

from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed
from tests.services.process import running
from tests.unit.serving.support import event

ROOT = Path(__file__).parents[2]
READER, READER_KEY = "test-reader", "test-reader-key"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    config = server.folder / "s3.json"
    identities = json.loads(config.read_text())["identities"]
    credentials = [{"accessKey": READER, "secretKey": READER_KEY}]
    identities.append({"name": "reader", "credentials": credentials, "actions": ["Read", "List"]})
    config.write_text(json.dumps({"identities": identities}))
    server.start()
    yield server
    server.stop()


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(server: Seaweed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """A bucket of this test's own."""
    import boto3

    settings = {
        "AWS_ENDPOINT_URL_S3": server.endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    bucket = f"models-{abs(hash(tmp_path))}"
    boto3.Session().client("s3").create_bucket(Bucket=bucket)
    own = {name: value for name, value in os.environ.items() if not name.startswith("WAKESWAP_")}
    return {
        **own,
        **settings,
        "WAKESWAP_MODEL_BUCKET": f"s3://{bucket}",
        "WAKESWAP_MODEL_TAG": "stable",
        "WAKESWAP_MODEL_CACHE": str(tmp_path / "first"),
        "PIP_NO_INDEX": "1",
    }


@pytest.fixture
def run(environment: Mapping[str, str]) -> Run:
    def call(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {**environment, **more}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return call


def pushed(run: Run, path: Path, version: str, channel: str, *tenant: str) -> None:
    run("-m", "infra.models", "push", "face_mesh", version, "--file", f"model={path}", *tenant)
    run("-m", "infra.models", "promote", "face_mesh", version, channel, *tenant)


def said(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    """Every line must be one of progress: a warning would fail here."""
    records = [json.loads(line) for line in done.stderr.splitlines()]
    return [(record["event"], record["model"]) for record in records]


def test_a_model_and_its_graph_go_from_one_node_to_the_next_and_to_a_stage(
    tmp_path: Path, run: Run, environment: Mapping[str, str], model_files: Callable[[str], Mapping[str, Path]]
) -> None:
    pushed(run, model_files("face_mesh")["model"], "1", "stable")
    second, third = (
        {"WAKESWAP_MODEL_CACHE": str(tmp_path / "second")},
        {"WAKESWAP_MODEL_CACHE": str(tmp_path / "third")},
    )
    reader = {"AWS_ACCESS_KEY_ID": READER, "AWS_SECRET_ACCESS_KEY": READER_KEY}
    fetched = [("fetch", "face_mesh"), ("ready", "face_mesh")]
    assert said(run("model-warmup/main.py", "face_mesh", **third, **reader)) == fetched, "read-only, and no noise"
    assert not next((tmp_path / "third").glob("derived-*/in_bucket"), None)
    assert said(run("model-warmup/main.py", "face_mesh")) == fetched
    assert said(run("model-warmup/main.py", "face_mesh", **second, **reader)) == fetched
    first = next((tmp_path / "first").glob("derived-*"))
    taken = next((tmp_path / "second").glob("derived-*"))
    assert (taken / "in_bucket").exists()
    for name in ("graph.onnx", "weights.bin"):
        assert (taken / name).read_bytes() == (first / name).read_bytes()
    assert json.loads(run("-m", "infra.models", "verify", "--bucket", "--json").stdout) == {"checked": 3, "bad": []}
    assert json.loads(run("-m", "infra.models", "gc", "--grace-days", "0", "--json").stdout)["objects"] == 0
    settings = {name: value for name, value in environment.items() if name.startswith(("WAKESWAP_", "AWS_", "PIP_"))}
    with running("seeing", tmp_path, **{**settings, **second, **reader}) as process:
        process.wait_ready(60)
        assert process.deliver(event()).status == 200
        assert "derived" not in process.log(), "nothing was made anew, and nothing went wrong"


def test_a_function_without_an_init_step_fetches_by_itself_each_tenants_own(
    tmp_path: Path, run: Run, environment: Mapping[str, str], model_files: Callable[[str], Mapping[str, Path]]
) -> None:
    pushed(run, model_files("face_mesh")["model"], "1", "stable")
    mine = onnx.load(model_files("face_mesh")["model"])
    mine.doc_string = "acme's own"
    onnx.save(mine, tmp_path / "mine.onnx")
    pushed(run, tmp_path / "mine.onnx", "1", "stable", "--tenant", "acme")
    settings = {name: value for name, value in environment.items() if name.startswith(("WAKESWAP_", "AWS_", "PIP_"))}
    settings["WAKESWAP_TENANTS"] = '{"acme": {}, "demo": {}}'
    with running("seeing", tmp_path, **settings) as process:
        process.wait_ready(60)
        for tenant in ("demo", "acme", "demo"):
            assert process.deliver(event(event_id=f"e-{tenant}", tenant=tenant)).status == 200
        assert process.log().count('"model loaded"') == 2
    names = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "first").glob("*face_mesh-*"))
    assert names == ["acme~face_mesh", "face_mesh"]
