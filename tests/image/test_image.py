"""The Dockerfile, built without an engine: every stage starts from the image alone, as its manifest asks, and works."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
import pytest
from urllib3.filepost import encode_multipart_formdata

from tests.image.building import Made
from tests.image.conftest import KEY
from tests.image.pods import Cluster, Started, services
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY
from tests.services.process import Answer, StageProcess, exchange

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FACE = Path(__file__).parents[1] / "data" / "face" / "one_face.jpg"
CLIP = Path(__file__).parents[1] / "data" / "video" / "face_gone_frames_10_to_19.mp4"
OF_VIDEOS = {"split", "assemble"}
MIB = 2**20
AT_MOST = 640 * MIB
"""546 MiB when this was written, half of it OpenCV, onnxruntime and numpy; 215 MiB compressed."""
UNCHECKED = 1
"""PEP 552: flags of bytecode that is believed without a look at its source."""

INSIDE = """
import errno, importlib, importlib.metadata, json, os, shutil, ssl

def refused(path):
    try:
        open(path, "w")
    except OSError as error:
        return errno.errorcode[error.errno]

importlib.import_module("infra.retention.cli")  # what a CronJob runs
modules = [name for name in importlib.metadata.packages_distributions() if name.isidentifier() and name[0] != "_"]
for name in modules:
    importlib.import_module(name)
print(json.dumps({
    "root": refused("/new"), "code": refused("/srv/app/new"), "tmp": refused("/tmp/new"),
    "shell": shutil.which("sh", path="/bin:/usr/bin:/usr/local/bin:/sbin:/usr/sbin"),
    "outside": os.path.exists("/work") or os.path.exists("/home"),
    "authorities": len(ssl.create_default_context().get_ca_certs()),
    "modules": modules,
}))
"""


class Broker(BaseHTTPRequestHandler):
    """Takes what is published outside of a reply."""

    published: list[Answer]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.published.append(Answer(0, dict(self.headers.items()), body))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def published() -> list[Answer]:
    return []


@pytest.fixture
def broker(published: list[Answer]) -> Iterator[str]:
    handler = type("Taking", (Broker,), {"published": published})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def bucket(cluster: Cluster) -> str:
    client = boto3.client(
        "s3",
        endpoint_url=cluster.environ["AWS_ENDPOINT_URL_S3"],
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    client.create_bucket(Bucket="wakeswap")
    return "wakeswap"


@contextmanager
def running(cluster: Cluster, name: str) -> Iterator[Started]:
    """Live, ready, without any right, and gone when it is told to."""
    with cluster.running(name) as stage:
        stage.wait_ready()
        assert stage.call("GET", "/health/liveness").status == 200
        status = stage.status()
        assert status["Uid"].split() == status["Gid"].split() == ["65532"] * 4
        assert {status[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert (status["NoNewPrivs"], status["Groups"]) == ("1", "")
        yield stage
        stage.terminate()
        assert stage.process.wait(60) == 0, stage.log()


def post(stage: StageProcess, path: str, body: bytes, **headers: str) -> Answer:
    with closing(stage.connect()) as connection:
        return exchange(connection, "POST", path, body, headers)


def hand_on(stage: StageProcess, event: Answer, **more: str) -> Answer:
    """As the broker does: what came is delivered as it is."""
    kept = {name: value for name, value in event.headers.items() if name.lower().startswith(("ce-", "content-type"))}
    answer = post(stage, "/", event.body, **kept, **more)
    assert answer.status in {200, 202, 204}, stage.log()
    return answer


def kind(event: Answer) -> str:
    return next(value for name, value in event.headers.items() if name.lower() == "ce-type")


@pytest.mark.usefixtures("bucket")
def test_a_job_runs_through_all_stages_of_the_image(cluster: Cluster, published: list[Answer]) -> None:
    done = {"intake"}
    with running(cluster, "intake") as stage:
        data = FACE.read_bytes()
        picture = ("face.jpg", data, "image/jpeg")
        body, content_type = encode_multipart_formdata({"source": picture, "target": picture})
        headers = {"Content-Type": content_type, "Authorization": f"Bearer {KEY}"}
        assert post(stage, "/v1/jobs", body, **headers).status == 202, stage.log()
        (begun,) = published
    event = begun
    for name in ("moderate", "detect", "swap", "enhance", "publish"):
        with running(cluster, name) as stage:
            event = hand_on(stage, event)
            assert kind(event) == f"dev.wakeswap.{name}.completed.v1", event.body
        done.add(name)
    assert json.loads(event.body)["image"]["size"] > 1000
    for name in ("notify", "meter"):
        with running(cluster, name) as stage:
            hand_on(stage, event)
        done.add(name)
    with running(cluster, "dead-letter") as stage:
        hand_on(stage, begun, **{"Ce-Knativeerrorcode": "500"})
    done.add("dead-letter")
    assert done == set(services()) - OF_VIDEOS


@pytest.mark.usefixtures("bucket")
def test_a_video_runs_through_its_stages_of_the_image(cluster: Cluster, published: list[Answer]) -> None:
    with running(cluster, "intake") as stage:
        source, target = ("face.jpg", FACE.read_bytes(), "image/jpeg"), ("clip.mp4", CLIP.read_bytes(), "video/mp4")
        body, content_type = encode_multipart_formdata({"source": source, "target": target})
        headers = {"Content-Type": content_type, "Authorization": f"Bearer {KEY}"}
        assert post(stage, "/v1/jobs", body, **headers).status == 202, stage.log()
        event = published.pop()
    for name in ("moderate", "split", "detect", "swap", "assemble", "publish"):
        with running(cluster, name) as stage:
            answer = hand_on(stage, event)
            event = published.pop() if published else answer
            assert kind(event) == f"dev.wakeswap.{name}.completed.v1", event.body
    result = json.loads(event.body)
    assert (result["media"], result["frames"], result["frames_swapped"]) == ("video", 30, 20)


def test_the_image_needs_nothing_beside_itself(image: Made, tmp_path: Path) -> None:
    """No volumes, no home, no shell; every package that is in it can be imported."""
    told = json.loads(Cluster(image, tmp_path, tmp_path, {}, {}, "").run(INSIDE))
    assert (told["root"], told["code"], told["tmp"]) == ("EROFS",) * 3
    assert told["shell"] is None
    assert not told["outside"]
    assert told["authorities"] > 100
    assert {"boto3", "cv2", "onnx", "onnxruntime", "redis", "jwt", "PIL", "limits"} <= set(told["modules"])


def test_the_image_is_compiled_ahead_small_and_without_tools(image: Made) -> None:
    files = [Path(place, name) for place, _, names in os.walk(image.folder) for name in names]
    for source in (path for path in files if path.suffix == ".py"):
        compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-311.pyc"
        assert compiled.read_bytes()[4] == UNCHECKED, source
    assert sum(path.lstat().st_size for path in files) < AT_MOST
    assert {path.name for path in files} & {"sh", "bash", "dash", "busybox", "apt", "dpkg", "gcc", "activate"} == set()
    assert not [
        path for path in files if path.lstat().st_uid or (path.lstat().st_mode & 0o022 and not path.is_symlink())
    ]


def test_the_list_of_parts_names_what_is_in_the_image(image: Made) -> None:
    listed = json.loads((image.folder / "srv/sbom.cdx.json").read_text())["components"]
    parts = {part["name"].lower().replace("_", "-"): part for part in listed}
    pins = (Path(__file__).parents[2] / "infra/image/pins.txt").read_text().splitlines()[1:]
    for name, _, version in (line.split()[0].partition("==") for line in pins):
        assert parts[name]["version"] == version
    assert {"python", "libc6", "libssl3", "libstdc++6"} <= parts.keys()
    assert parts["libssl3"]["purl"].startswith("pkg:deb/debian/libssl3@3.")
    status = image.folder / "var/lib/dpkg/status.d"
    assert {path.name for path in status.iterdir()} <= parts.keys()
    for package in status.iterdir():
        assert (image.folder / "usr/share/doc" / package.name / "copyright").exists()
