"""The signals that ask a command to end, and how it does: everything that it started is stopped first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP: the terminal was closed."""


async def cancellable(work: Coroutine[None, None, T]) -> T:
    """What `work` returns; the first ending signal cancels it, later ones do not disturb it while it tidies up."""
    task = asyncio.ensure_future(work)
    on_end(task.cancel)
    return await task


async def wait_for_end() -> None:
    """Return at the first ending signal."""
    wanted = asyncio.Event()
    on_end(wanted.set)
    await wanted.wait()


def on_end(act: Callable[[], object]) -> None:
    """Call `act` once, at the first ending signal, instead of what was called before. What is ignored, as SIGHUP is
    under nohup, stays ignored."""
    acted = False

    def once() -> None:
        nonlocal acted
        if not acted:
            acted = True
            act()

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, once)
