"""A watched folder's files: which are there, which version, what a store would say of them, who still writes them."""

from __future__ import annotations

import fcntl
import fnmatch
import functools
import hashlib
import logging
import os
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

UNFINISHED = (".tmp", ".meta", ".part")
_F_SETSIG = 10
"""Linux, fcntl.h; the fcntl module does not name it."""


@dataclass(frozen=True, slots=True)
class Version:
    """What tells one content of a file from the next: modification time in nanoseconds, size in bytes, inode."""

    mtime_ns: int
    size: int
    inode: int


def scan(root: Path, match: str) -> dict[str, Version]:
    """Every finished file below `root` whose key matches; hidden names, `UNFINISHED` suffixes and names that are no
    UTF-8 (no object can have one) are left out."""
    patterns = match.split("/") if match else []
    return dict(_scan(root, "", patterns))


def _scan(folder: Path, prefix: str, patterns: list[str]) -> Iterator[tuple[str, Version]]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith(UNFINISHED) or not _is_text(entry.path):
            continue
        if patterns and not fnmatch.fnmatchcase(entry.name, patterns[0]):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _scan(Path(entry.path), f"{prefix}{entry.name}/", patterns[1:])
        elif len(patterns) <= 1:
            yield from _file(entry, prefix + entry.name)


@functools.lru_cache(maxsize=10_000)
def _is_text(path: str) -> bool:
    """Whether a name is UTF-8; one that is not is told once."""
    try:
        path.encode()
    except UnicodeEncodeError:
        log.warning("%r is left out: its name is not UTF-8", os.fsencode(path))
        return False
    return True


def _file(entry: os.DirEntry[str], key: str) -> Iterator[tuple[str, Version]]:
    try:
        facts = entry.stat()
    except OSError:  # gone, or a link that leads nowhere or in a circle
        return
    if stat.S_ISREG(facts.st_mode):
        yield key, Version(facts.st_mtime_ns, facts.st_size, facts.st_ino)


def md5_of(path: Path) -> str | None:
    """The content's MD5 in hex, which is the ETag S3 gives to a plain upload; None while somebody writes the file."""
    with path.open("rb") as file:
        if _is_being_written(file.fileno()):
            return None
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _is_being_written(descriptor: int) -> bool:
    """Whether a process has the file open for writing. The kernel refuses a read lease exactly then; where there are
    no leases (other systems, network disks, files of others) nobody can tell, and two equal looks must do.

    Who opens the file while we hold the lease makes the kernel send a signal, so it is one that is ignored by default.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        fcntl.fcntl(descriptor, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
