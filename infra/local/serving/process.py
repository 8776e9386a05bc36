"""One operating system process in a session of its own, watched without a race.

The exit is noticed before the process is reaped, so its group number cannot have been given to anyone else when
what is left of the group is ended. Knows asyncio and signals, nothing of services.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


class SpawnError(Exception):
    """The command could not be started at all."""


class Process:
    """A started command; `exited` becomes its return code (negative: the signal), never an error."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self.pid = popen.pid
        self.exited: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._watch, name=f"wait-{self.pid}", daemon=True).start()

    def _watch(self) -> None:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._popen.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._ended)

    def _ended(self) -> None:
        self._kill_group()
        code = self._popen.wait()
        if not self.exited.done():
            self.exited.set_result(code)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it has ended
            os.killpg(self.pid, signal.SIGKILL)

    async def stop(self, grace: float) -> int:
        """SIGTERM to the command alone, as in a container; after `grace` seconds SIGKILL to all. The return code."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            await asyncio.wait({self.exited}, timeout=grace)
        if not self.exited.done():
            self._kill_group()
        return await asyncio.shield(self.exited)


def spawn(command: Sequence[str], env: Mapping[str, str], cwd: str | None, log: Path, fds: Sequence[int]) -> Process:
    """Start `command` with exactly this environment, output appended to `log`; raises SpawnError."""
    with log.open("ab") as output:
        try:
            popen = subprocess.Popen(
                list(command),
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(fds),
                start_new_session=True,
            )
        except OSError as error:
            raise SpawnError(f"{command[0]}: {error.strerror or error}") from error
        except ValueError as error:  # a NUL in the command or in a variable
            raise SpawnError(f"{command[0]}: {error}") from error
    return Process(popen)


async def first_of(one: asyncio.Future[None], other: asyncio.Future[int]) -> None:
    """Return when one of two futures is done; the other goes on."""
    waiters: list[asyncio.Future[None] | asyncio.Future[int]] = [one, other]
    await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
