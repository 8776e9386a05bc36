"""Which versions of which files have been announced, over restarts. Knows SQLite."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from infra.local.sources.folder import Version
from infra.local.state import StateError

log = logging.getLogger(__name__)

_SCHEMA = "create table if not exists versions (key text primary key, mtime int, size int, inode int)"


class Announced:
    """The versions that the sink has taken. Used by one thread at a time.

    What the disk does not take is remembered until the process ends. Forgetting is harmless: an announcement made
    twice has the same id, so synchronous=NORMAL is enough.
    """

    def __init__(self, path: Path) -> None:
        """Raises StateError for a damaged file."""
        try:
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._database.execute("pragma journal_mode=wal")
            self._database.execute("pragma synchronous=normal")
            self._database.execute(_SCHEMA)
            rows = self._database.execute("select key, mtime, size, inode from versions").fetchall()
        except sqlite3.Error as error:
            raise StateError(
                f"{path}: {error}. If it is damaged, remove it: every upload that is still there is announced again, "
                "which makes no second job"
            ) from error
        self.versions = {key: Version(mtime, size, inode) for key, mtime, size, inode in rows}

    def add(self, key: str, version: Version) -> None:
        """Remember one."""
        self.versions[key] = version
        row = (key, version.mtime_ns, version.size, version.inode)
        self._write("insert or replace into versions values (?, ?, ?, ?)", row)

    def keep(self, keys: Mapping[str, Version]) -> None:
        """Forget files that are gone."""
        for key in [key for key in self.versions if key not in keys]:
            del self.versions[key]
            self._write("delete from versions where key = ?", (key,))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _write(self, sql: str, row: tuple[str | int, ...]) -> None:
        try:
            self._database.execute(sql, row)
        except (sqlite3.Error, OverflowError) as error:  # disk full, or a time after the year 2262
            log.warning("announcement not remembered: %s", error)
