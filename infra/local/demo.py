"""The only module here that knows the product: its front door, its inbox, and where a finished job lies.

`by_http` is how an application asks for a swap, `by_upload` how an upload starts one; both work against any platform
that runs the product's manifests.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from infra.local.client import POLL_SECONDS, Client
from infra.local.state import Facts

TENANT = "demo"
BUCKET = "wakeswap"
FRONT_DOOR = "intake"
SECRET = "wakeswap-intake"  # noqa: S105 - the name of the Secret
KEYS = "WAKESWAP_API_KEYS"
PRODUCT = "dev.wakeswap."
FINISHED = "dev.wakeswap.publish.completed.v1"
ENDED = (".rejected.v1", ".failed.v1")
RUNNING = frozenset({"waiting", "queued", "running"})
FORMATS: Mapping[str, str] = {
    **{f".{name}": name for name in ("jpeg", "png", "webp", "avif", "tiff", "bmp", "gif")},
    **{f".{name}": name for name in ("mp4", "mov", "mkv", "webm")},
    ".jpg": "jpeg",
    ".tif": "tiff",
}
"""The job's option `format` by the ending of the file that is to hold the result; else it is the target's."""
_PIECE = 1 << 20
WAIT_SECONDS = 60
HEARD_SECONDS = 3.0
"""By then an upload has been announced: a refusal that names no job can be ours once nothing is on its way."""
SAMPLES = ("t1.jpg", "astronaut.png")
"""Source and target of the demonstration, taken out of packages by model-warmup."""
SAMPLE_OPTIONS: Mapping[str, object] = {"source_face": "5"}
"""Of the six people in the source, the one whose light and pose are nearest to the target's."""


class JobError(Exception):
    """The job ended without a picture; `code` is the product's own."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")


@dataclass(frozen=True)
class Finished:
    """One job that ended well: its id and the picture."""

    job: str
    picture: Path


def tenant_key(facts: Facts) -> str:
    """The demo tenant's API key, from the Secret that the platform made."""
    pairs = facts.generated.get(SECRET, {}).get(KEYS, "")
    for pair in pairs.split(","):
        tenant, _, key = pair.partition("=")
        if tenant == TENANT and key:
            return key
    raise JobError("no_key", f"the manifests make no {KEYS} for the tenant {TENANT}")


def inbox(facts: Facts) -> Path:
    """The folder to drop files into."""
    folder = facts.watches.get(BUCKET)
    if folder is None:
        raise JobError("no_inbox", f"no folder plays the bucket {BUCKET}")
    return Path(folder) / "tenants" / TENANT / "inbox"


async def by_http(
    client: Client,
    source: Path,
    target: Path,
    options: Mapping[str, object],
    out: Path,
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> Finished:
    """Upload a picture and a picture or a video to the front door, wait for the job, write its result to `out`.

    `tell` is called with how far a video is. Raises JobError.
    """
    base = client.facts.services.get(FRONT_DOOR)
    if base is None:
        raise JobError("no_front_door", f"there is no Service {FRONT_DOOR}")
    key = {"Authorization": f"Bearer {tenant_key(client.facts)}"}
    form = aiohttp.FormData()
    for name, path in (("source", source), ("target", target)):
        form.add_field(name, io.BytesIO(path.read_bytes()), filename=path.name)
    named = {"format": FORMATS[out.suffix.lower()]} if out.suffix.lower() in FORMATS else {}
    form.add_field("options", json.dumps({**named, **options}), content_type="application/json")
    wait = {**key, "Prefer": f"wait={WAIT_SECONDS}"}
    async with client.http.post(f"{base}/v1/jobs", data=form, headers=wait) as answer:
        job = await _job(answer)
    while job["status"] in RUNNING:
        await asyncio.sleep(POLL_SECONDS)
        async with client.http.get(f"{base}/v1/jobs/{job['id']}", headers=key) as answer:
            job = await _job(answer)
        if "progress" in job:
            tell("{frames_done} of {frames} frames, {segments_done} of {segments} segments".format(**job["progress"]))
    if job["status"] != "succeeded":
        error = job.get("error") or {}
        raise JobError(error.get("code", job["status"]), error.get("detail", "the job did not succeed"))
    async with client.http.get(f"{base}/v1/jobs/{job['id']}/result", headers=key) as answer:
        if answer.status != 200:
            raise _problem(answer.status, await answer.read())
        with out.open("wb") as file:
            async for piece in answer.content.iter_chunked(_PIECE):
                file.write(piece)
    return Finished(job["id"], out)


async def _job(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    body = await answer.read()
    if answer.status >= 300:
        raise _problem(answer.status, body)
    return dict(json.loads(body))


def _problem(status: int, body: bytes) -> JobError:
    try:
        problem = json.loads(body)
        return JobError(problem["code"], problem["detail"])
    except (ValueError, KeyError, TypeError):
        return JobError(f"http_{status}", body.decode(errors="replace").strip())


async def by_upload(
    client: Client, source: Path, target: Path, options: Mapping[str, object], tell: Callable[[str], None]
) -> Finished:
    """Drop two pictures and a manifest into the inbox, wait for the end that the events tell; raises JobError.

    `tell` is called again and again with the functions that are not asleep.
    """
    before = {(event["source"], event["id"]) for event in await client.events(limit=1000)}
    folder = inbox(client.facts) / f"{time.strftime('demo-%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder.mkdir(parents=True)
    names = {"source": f"face{source.suffix}", "target": f"scene{target.suffix}"}
    _place(source.read_bytes(), folder / names["source"])
    _place(target.read_bytes(), folder / names["target"])
    _place(json.dumps({**names, "options": options}).encode(), folder / "demo.job.json")
    heard = asyncio.get_running_loop().time() + HEARD_SECONDS
    while True:
        await asyncio.sleep(POLL_SECONDS)
        status = await client.status()
        tell(
            ", ".join(f"{name} {one['state']}" for name, one in status["services"].items() if one["state"] != "asleep")
        )
        events = [event for event in await client.events() if (event["source"], event["id"]) not in before]
        ended = {event["subject"]: _uploads(client, event["subject"]) for event in events if _is_end(event)}
        ours = [job for job, folders in ended.items() if folder in folders]
        refused = [job for job, folders in ended.items() if not folders]
        if ours:
            return _finished(client, ours[0])
        if refused and status["idle"] and asyncio.get_running_loop().time() > heard:
            _finished(client, refused[-1])


def _uploads(client: Client, job: str) -> set[Path]:
    """The folders in which a job's sources were put; empty for one that was refused before it was a job."""
    bucket = Path(client.facts.watches[BUCKET])
    try:
        record = json.loads((bucket / "tenants" / TENANT / "jobs" / job / "job.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return set()
    return {(bucket / source["key"]).parent for source in record["job"]["source"]}


def _is_end(event: Mapping[str, Any]) -> bool:
    """Whether a job ends with this event. Raises JobError for an upload that never became a job."""
    kind = event["type"]
    if event["state"] == "dead" and not kind.startswith(PRODUCT):
        raise JobError("undeliverable", f"{event['destination']} answered {event['code']}: {event['answer']}")
    return bool(kind == FINISHED or kind.endswith(ENDED))


def _place(data: bytes, goal: Path) -> None:
    """Write under a hidden name first: nobody may see half a file."""
    hidden = goal.with_name(f".{goal.name}.tmp")
    hidden.write_bytes(data)
    hidden.replace(goal)


def _finished(client: Client, job: str) -> Finished:
    bucket = Path(client.facts.watches[BUCKET])
    outcome = json.loads((bucket / "tenants" / TENANT / "jobs" / job / "outcome.json").read_text(encoding="utf-8"))
    data = outcome["data"]
    if outcome["type"] != FINISHED:
        raise JobError(data["code"], data["detail"])
    return Finished(job, bucket / data["image"]["key"])


async def samples(folder: Path) -> tuple[Path, Path]:
    """The two sample pictures, fetched if they are not there yet; raises JobError."""
    source, target = (folder / name for name in SAMPLES)
    if not (source.exists() and target.exists()):
        process = await asyncio.create_subprocess_exec(sys.executable, "model-warmup/main.py", "--samples", str(folder))
        if await process.wait() != 0:
            raise JobError("no_samples", "the sample pictures could not be fetched")
    return source, target
