"""The inbox's doors have the gate of the HTTP API: size, type and pixels, before a job exists."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from shared.events.payloads import Rejection
from shared.jobs import batch
from tests.unit.imaging.test_fuzz import SAMPLES
from tests.unit.jobs.world import DATA, World, picture, ping, rejections


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("source.jpg", picture(1))
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("source.jpg"))
    return buffer.getvalue()


def pair(world: World, data: bytes, tenant: str) -> list[Rejection]:
    folder = f"tenants/{tenant}/inbox/a"
    world.put(f"{folder}/source.jpg", data)
    return rejections(world.upload(world.put(f"{folder}/target.jpg", picture(2))))


def manifest(world: World, data: bytes, tenant: str) -> list[Rejection]:
    folder = f"tenants/{tenant}/inbox"
    world.put(f"{folder}/t.jpg", data)
    world.put(f"{folder}/s.jpg", picture(1))
    body = json.dumps({"source": "s.jpg", "target": "t.jpg"}).encode()
    return rejections(world.upload(world.put(f"{folder}/x.job.json", body)))


def template_source(world: World, data: bytes, tenant: str) -> list[Rejection]:
    world.put(f"tenants/{tenant}/templates/x/target.jpg", picture(2))
    return rejections(world.upload(world.put(f"tenants/{tenant}/inbox/templates/x/me.jpg", data)))


def template_target(world: World, data: bytes, tenant: str) -> list[Rejection]:
    world.put(f"tenants/{tenant}/templates/x/target.jpg", data)
    return rejections(world.upload(world.put(f"tenants/{tenant}/inbox/templates/x/me.jpg", picture(1))))


def batched(world: World, data: bytes, tenant: str) -> list[Rejection]:
    world.put(f"tenants/{tenant}/inbox/nightly/a/source.jpg", data)
    world.put(f"tenants/{tenant}/inbox/nightly/a/target.jpg", picture(2))
    return rejections(list(batch.run(ping(tenant=tenant), world)))


Door = Callable[[World, bytes, str], list[Rejection]]
DOORS: tuple[Door, ...] = (pair, manifest, template_source, template_target, batched)
REFUSED = {
    "zip": (zipped(), 415, "unsupported_media_type", {"found": "a ZIP archive"}),
    "tar": (tarred(), 415, "unsupported_media_type", {"found": "a tar archive"}),
    "playlist": (b"#EXTM3U\nhttp://10.0.0.1/\n", 415, "unsupported_media_type", {"found": "a playlist (M3U8)"}),
    "bomb": ((DATA / "image" / "bomb_20000x20000.png").read_bytes(), 413, "image_too_large", None),
    "cut heic": (SAMPLES["heic"][:60], 422, "media_truncated", {}),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", REFUSED)
def test_every_door_refuses_alike(world: World, door: Door, name: str) -> None:
    data, status, code, context = REFUSED[name]
    refused = door(world, data, "demo")
    assert {(entry.status, entry.code) for entry in refused} == {(status, code)}
    assert context is None or refused[0].context == context


@pytest.mark.parametrize("door", DOORS)
def test_every_door_knows_the_tenants_size_before_it_reads(world: World, door: Door) -> None:
    refused = door(world, picture(1) + bytes(5000), "small")
    assert {(entry.status, entry.code) for entry in refused} == {(413, "image_too_large")}
    assert refused[0].context == {"limit_bytes": 5000}
