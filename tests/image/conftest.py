"""The image, built once for all workers of a run, and the cluster that it is started on."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.image import context, dockerfile_stages
from tests.image.building import Builder, Made
from tests.image.pods import Cluster
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed
from tests.signing import EVENT_KEYS

KEY = "wk-image-0123456789abcdef0123456789"
MODELS = ("centerface", "face_mesh", "open_nsfw", "pp_ocr_v6_small")


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Target `cpu`, below a folder that every user may enter."""
    if os.geteuid() or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("building and starting an image takes root and mount namespaces")
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "image"
    shared.mkdir(exist_ok=True)
    made = shared / "made.pickle"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            builder = Builder(dockerfile_stages.read(), context.copy(shared / "context"), shared / "work")
            finished = builder.build("cpu")
            for stage in (shared / "work").iterdir():
                if stage != finished.folder:  # pytest keeps the folders of three runs
                    shutil.rmtree(stage)
            made.write_bytes(pickle.dumps(finished))
    built: Made = pickle.loads(made.read_bytes())
    return built


@pytest.fixture
def cluster(
    image: Made, tmp_path: Path, model_files: Callable[[str], Mapping[str, Path]], broker: str
) -> Iterator[Cluster]:
    for name in MODELS:
        (folder,) = {path.parent for path in model_files(name).values()}
        shutil.copytree(folder, tmp_path / "models" / folder.name)
    for path in [tmp_path / "models", *(tmp_path / "models").rglob("*")]:
        os.chown(path, 65532, 65532)
    (tmp_path / "seaweed").mkdir()
    store = Seaweed(tmp_path / "seaweed")
    store.start()
    credentials = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    try:
        yield Cluster(
            image,
            tmp_path,
            tmp_path / "models",
            secrets={
                "WAKESWAP_EVENT_KEYS": EVENT_KEYS,
                "WAKESWAP_API_KEYS": f"demo={KEY}",
                "WAKESWAP_NOTIFICATION_TOKEN": "",
                "WAKESWAP_WEBHOOK_SECRETS": "",
            },
            environ={
                **credentials,
                "AWS_ENDPOINT_URL_S3": store.endpoint,
                "AWS_DEFAULT_REGION": "us-east-1",
                "WAKESWAP_TENANTS": '{"demo": {}}',
            },
            broker=broker,
        )
    finally:
        store.stop()
