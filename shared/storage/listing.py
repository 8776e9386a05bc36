"""Listing a folder as S3 lists a bucket: keys in byte order, pages, common prefixes. Knows paths only."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from shared.storage.protocol import ObjectInfo, Page

_LAST = "\U0010ffff"
"""Sorts behind every key below a common prefix."""


def walk(root: Path, prefix: str, cursor: str, *, skip: str) -> Iterator[tuple[str, Path]]:
    """(key, path) of every regular file with `prefix` after `cursor`, in code point (= UTF-8 byte) order.

    Goes straight to the folder that the prefix names: its neighbours may be many.
    """
    folder, base = root, ""
    for name in prefix.split("/")[:-1]:
        folder, base = folder / name, f"{base}{name}/"
        if name in ("", ".", "..") or base == f"{skip}/" or not _is_folder(folder):
            return
    yield from _walk(folder, base, prefix, cursor, skip)


def _is_folder(path: Path) -> bool:
    """Not by a link, and not by a name that no folder can have."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


def _walk(folder: Path, base: str, prefix: str, cursor: str, skip: str) -> Iterator[tuple[str, Path]]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    named = []
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        wanted = is_folder or entry.is_file(follow_symlinks=False)
        if wanted and _is_text(entry.name) and not (base == "" and entry.name == skip):
            named.append((base + entry.name + ("/" if is_folder else ""), is_folder))
    for key, is_folder in sorted(named):
        path = folder / key.removeprefix(base).rstrip("/")
        if is_folder:
            # a subtree is entered only where it can still hold a wanted key
            related = key.startswith(prefix) or prefix.startswith(key)
            if related and (key > cursor or cursor.startswith(key)):
                yield from _walk(path, key, prefix, cursor, skip)
        elif key.startswith(prefix) and key > cursor:
            yield key, path


def _is_text(name: str) -> bool:
    """False for names that are not UTF-8 on disk: they can be no key."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def fill_page(
    found: Iterator[tuple[str, Path]], info: Callable[[str, Path], ObjectInfo], prefix: str, limit: int, delimiter: str
) -> Page:
    """Take up to `limit` objects and common prefixes; a common prefix counts once, as on S3."""
    objects: list[ObjectInfo] = []
    prefixes: list[str] = []
    last = ""
    for key, path in found:
        rest = key[len(prefix) :]
        common = prefix + rest.split(delimiter, 1)[0] + delimiter if delimiter and delimiter in rest else ""
        if common and prefixes and prefixes[-1] == common:
            continue
        if len(objects) + len(prefixes) == limit:
            return Page(tuple(objects), tuple(prefixes), last)
        with suppress(FileNotFoundError):  # deleted while we list
            if common:
                prefixes.append(common)
            else:
                objects.append(info(key, path))
        last = common + _LAST if common else key
    return Page(tuple(objects), tuple(prefixes), "")
