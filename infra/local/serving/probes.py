"""Readiness, startup and liveness checks of one pod over loopback."""

from __future__ import annotations

import asyncio

import aiohttp

from infra.local.serving.model import Probe

POLL_SECONDS = 0.05
"""Knative's queue-proxy polls a readiness probe without a period every 50 ms."""


async def passes(probe: Probe, port: int, client: aiohttp.ClientSession) -> bool:
    """One try: HTTP passes on 200..399 as in Kubernetes, TCP on a connection."""
    try:
        async with asyncio.timeout(probe.timeout):
            if probe.scheme == "tcp":
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return True
            url = f"http://127.0.0.1:{port}{probe.path}"
            async with client.get(url, headers=list(probe.headers), allow_redirects=False) as answer:
                return 200 <= answer.status < 400
    except (OSError, TimeoutError, aiohttp.ClientError):
        return False


async def wait_passed(probe: Probe, port: int, client: aiohttp.ClientSession) -> None:
    """Return after `successes` passes in a row. The caller bounds the time."""
    await asyncio.sleep(probe.initial_delay)
    in_row = 0
    while True:
        in_row = in_row + 1 if await passes(probe, port, client) else 0
        if in_row >= probe.successes:
            return
        await asyncio.sleep(POLL_SECONDS)


async def wait_started(probe: Probe, port: int, client: aiohttp.ClientSession) -> bool:
    """The startup probe: True once it passes, False after failureThreshold periods without a pass."""
    limit = probe.initial_delay + probe.failures * max(probe.period, 1.0)
    try:
        async with asyncio.timeout(limit):
            await wait_passed(probe, port, client)
    except TimeoutError:
        return False
    return True


async def wait_failed(probe: Probe, port: int, client: aiohttp.ClientSession) -> None:
    """The liveness probe: return after failureThreshold failures in a row."""
    await asyncio.sleep(probe.initial_delay)
    in_row = 0
    while in_row < probe.failures:
        await asyncio.sleep(max(probe.period, 1.0))
        in_row = 0 if await passes(probe, port, client) else in_row + 1
