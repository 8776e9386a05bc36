"""One worker at a time on one thing, over threads and processes of a node, whatever happens to the worker.

flock(2): the kernel drops the lock when the last descriptor is closed, so a crash leaves nothing to clean up. Lock
files stay: removing one would let a newcomer lock a new file while an old owner still holds the removed one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of the file `path` (made if missing); `waiting` is called once if another one holds it."""
    handle = _open(path)
    try:
        if not _take(handle):
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """The same without waiting: gives False when another one holds the lock."""
    handle = _open(path)
    try:
        yield _take(handle)
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
