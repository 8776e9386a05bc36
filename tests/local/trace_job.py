"""One job of all stages and its spans: a bucket's notification of an upload, every function asleep, to the webhook.

    python -m tests.local.trace_job        run it, and draw docs/trace.svg anew from its spans (`make trace`)

The enhancer is a stand-in, since its weights may not be handed on; all else is what `make run` runs. Needs the default
models (`make models`).
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from tests.local.machine import ROOT, Change, Machine, Receiver
from tests.local.test_enhance import NAME, install
from tests.local.test_pipeline import FACE
from tests.local.test_quota import no_uploads

PICTURES = ("one_face.jpg", "same_face_twice.jpg")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="trace-") as made:
        file, receiver = Path(made) / "spans.jsonl", Receiver()
        machine = prepared(Path(made), file, receiver.tenants())
        machine.up()
        try:
            machine.until(machine.asleep, 60)
            notify(machine, upload(machine))
            machine.until(lambda: bool(receiver.told) and machine.asleep(), 120)
        finally:
            machine.down()
            receiver.close()
        sys.argv[1:] = [str(file)]
        runpy.run_path(str(ROOT / "docs/trace_picture.py"), run_name="__main__")
    return 0


def prepared(folder: Path, file: Path, tenants: dict[str, Any]) -> Machine:
    """A machine whose functions write their spans to `file`, whose uploads are told of by nobody but `notify`."""
    lock = install(folder / "standin")
    shutil.copytree(ROOT / ".wakeswap/models", folder / "models", copy_function=os.link)

    def with_enhancer(docs: list[dict[str, Any]]) -> None:
        (data,) = (doc["data"] for doc in docs if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap")
        data |= {"WAKESWAP_MODEL_BUCKET": f"file:{lock.parent / 'bucket'}", "WAKESWAP_MODEL_LOCK": str(lock)}

    return Machine(folder, keeping(file), no_uploads, with_enhancer, tenants=tenants, models=folder / "models", idle=3)


def keeping(file: Path) -> Change:
    """Have every function write its spans to `file`."""

    def change(docs: list[dict[str, Any]]) -> None:
        for doc in docs:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
                doc["data"]["WAKESWAP_TRACE_FILE"] = str(file)

    return change


def upload(machine: Machine) -> str:
    """Two pictures and a job that asks for an enhancer, in the bucket; the key of the last."""
    for name in PICTURES:
        shutil.copy(FACE / name, machine.inbox / name)
    job = {"source": PICTURES[0], "target": PICTURES[1], "options": {"enhancer": NAME}}
    (machine.inbox / "traced.job.json").write_text(json.dumps(job))
    return "tenants/demo/inbox/traced.job.json"


def notify(machine: Machine, key: str) -> None:
    """As MinIO says that an object was written, by its webhook."""
    facts = machine.facts()
    entry = {"bucket": {"name": "wakeswap"}, "object": {"key": key, "size": 9, "eTag": "e"}}
    body = json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": entry}]}).encode()
    token = facts["generated"]["wakeswap-intake"]["WAKESWAP_NOTIFICATION_TOKEN"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(facts["services"]["intake"] + "/events/s3", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 202


if __name__ == "__main__":
    sys.exit(main())
