"""Manifests of the little services, as documents a test can change, and the parts to run one of them."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from infra.local.serving.activator import Activator
from infra.local.serving.environment import Configs
from infra.local.serving.fleet import FleetLimits
from infra.local.serving.ledger import Ledger
from infra.local.serving.pods import PodRuntime
from infra.local.serving.spec import parse_service

Document = dict[str, Any]

GUNICORN = ["gunicorn", "--worker-class", "gthread", "--threads", "16", "tests.local.manifests.tiny:app"]

SERVICE: Document = {
    "apiVersion": "serving.knative.dev/v1",
    "kind": "Service",
    "metadata": {"name": "tiny"},
    "spec": {
        "template": {
            "metadata": {"annotations": {}},
            "spec": {
                "containerConcurrency": 4,
                "timeoutSeconds": 20,
                "containers": [
                    {
                        "image": "tiny",
                        "command": list(GUNICORN),
                        "readinessProbe": {"httpGet": {"path": "/health/readiness"}},
                    }
                ],
            },
        }
    },
}


def service(
    *,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, object] | None = None,
    container: Mapping[str, object] | None = None,
    name: str = "tiny",
) -> Document:
    """The Service with autoscaling annotations (short names), revision fields and container fields changed."""
    document = copy.deepcopy(SERVICE)
    document["metadata"]["name"] = name
    template = document["spec"]["template"]
    template["metadata"]["annotations"] = {
        key if "/" in key else f"autoscaling.knative.dev/{key}": value for key, value in (annotations or {}).items()
    }
    template["spec"] |= spec or {}
    template["spec"]["containers"][0] |= container or {}
    return document


@contextlib.asynccontextmanager
async def activator(
    folder: Path,
    document: Document,
    *,
    limits: FleetLimits | None = None,
    configs: Configs | None = None,
    overrides: Mapping[str, str] | None = None,
    grace: float = 5.0,
) -> AsyncIterator[tuple[Activator, aiohttp.ClientSession]]:
    """A served activator and a client with its address as base."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
    ) as client:
        for name in ("pods", "logs", "volumes"):
            (folder / name).mkdir()
        runtime = PodRuntime(
            configs=configs or Configs(),
            ledger=Ledger(folder / "pods"),
            logs=folder / "logs",
            volumes=folder / "volumes",
            client=client,
            overrides=overrides or {},
            grace_limit=grace,
        )
        quick = replace(limits or FleetLimits(idle=0.5), backoff=0.05)
        served = Activator(parse_service(document), runtime, quick)
        await served.start()
        try:
            timeout = aiohttp.ClientTimeout(total=60)
            async with aiohttp.ClientSession(served.url, timeout=timeout) as outside:
                yield served, outside
        finally:
            await served.close(grace)


async def get(client: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    """Status and text."""
    async with client.get(path) as answer:
        return answer.status, await answer.text()


async def asleep(served: Activator) -> None:
    """Return once no process is left; fails after ten seconds."""
    async with asyncio.timeout(10):
        await served.fleet.wait_asleep()
