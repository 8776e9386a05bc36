"""Writing a file while hashing it, and what a full disk means.

The only module that writes model bytes: every source goes through `receive`, so that size, digest and durability
are handled once.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from shared.errors import CacheFullError, JsonValue

CHUNK = 1 << 20
"""Bytes per read: large enough that Python's own cost vanishes beside SHA-256's."""
HEAD = 512
"""Bytes kept of the beginning, to tell what a wrong file is."""

LIMIT = "EFBIG"
"""The reason of a CacheFullError that more room does not help."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Report: TypeAlias = Callable[[int, int], None]
"""Called with bytes done and bytes in all (0 when not known)."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Received:
    """What was written."""

    size: int
    sha256: str
    head: bytes


def receive(stream: Readable, target: Path, total: int, report: Report) -> Received:
    """Write `stream` to `target` (replaced), hashing on the way, and flush it to disk. Raises CacheFullError."""
    digest, size, head = hashlib.sha256(), 0, b""
    report(0, total)
    with disk_errors(), target.open("wb") as file:
        while chunk := stream.read(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            head = head or chunk[:HEAD]
            size += len(chunk)
            report(size, total)
        file.flush()
        os.fsync(file.fileno())
    return Received(size, digest.hexdigest(), head)


def measure(path: Path) -> Received:
    """What is already at `path`, by reading it once."""
    digest, size, head = hashlib.sha256(), 0, b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            head = head or chunk[:HEAD]
            size += len(chunk)
    return Received(size, digest.hexdigest(), head)


def require_space(folder: Path, needed: int) -> None:
    """Raises CacheFullError when the disk of `folder` has less than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise CacheFullError(
            f"The model cache needs {needed} more bytes and has {free} free.", context={"needed": needed, "free": free}
        )


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turns "no space left" (and a quota or file-size limit reached) into CacheFullError."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            context: dict[str, JsonValue] = {"reason": errno.errorcode[error.errno]}
            raise CacheFullError("The disk of the model cache is full.", context=context) from error
        raise


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
