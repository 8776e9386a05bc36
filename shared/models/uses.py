"""Who uses which set of a cache, over processes of a node: so that room is never made at the cost of a user.

A process that was given a set's paths holds a shared flock(2) on `<set>.use` for as long as it lives; the kernel
drops it whatever happens to the process, and a folder that is mounted read-only serves for it too. The file's time is
that of the last use.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SUFFIX = ".use"


class Uses:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._held)

    def hold(self, name: str) -> None:
        """Note that this process uses the set from now on; in a folder without any note, it goes without."""
        with self._lock, suppress(OSError):
            if name not in self._held:
                handle = self._open(name)
                fcntl.flock(handle, fcntl.LOCK_SH)  # waits at most for a removal
                self._held[name] = handle
            with suppress(PermissionError):
                os.utime(self._held[name])

    def release(self, name: str) -> None:
        with self._lock:
            if (handle := self._held.pop(name, -1)) >= 0:
                os.close(handle)

    @contextmanager
    def unused(self, name: str) -> Iterator[bool]:
        """Keep users away from the set; gives False when there is one."""
        handle = os.open(self._folder / f"{name}{SUFFIX}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(handle)

    def last(self, name: str) -> float:
        """Seconds since the epoch; 0 when no use is noted."""
        with suppress(OSError):
            return (self._folder / f"{name}{SUFFIX}").stat().st_mtime
        return 0.0

    def _open(self, name: str) -> int:
        path = self._folder / f"{name}{SUFFIX}"
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _close(held: dict[str, int]) -> None:
    for handle in held.values():
        os.close(handle)
