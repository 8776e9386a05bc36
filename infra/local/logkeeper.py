"""Keeps the functions' logs within bounds while they are being written.

A function holds its log open for as long as it lives, so the log is not moved but copied to `.1` and cut: the writer
appends, and goes on at the new end. Lines written between the copy and the cut are lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path

log = logging.getLogger(__name__)

LOG_BYTES = 16 * 1024 * 1024
"""A log larger than this is cut, so one function's logs take about twice as much at most."""
LOOK_SECONDS = 5.0


class LogKeeper:
    """Looks after the `*.log` files of one folder."""

    def __init__(self, folder: Path, limit: int = LOG_BYTES) -> None:
        self._folder = folder
        self._limit = limit

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Set aside every log that is too large; on a full disk its old part is given up to make room."""
        for path in self._folder.glob("*.log"):
            if path.stat().st_size <= self._limit:
                continue
            aside = path.with_suffix(".log.1")
            try:
                shutil.copyfile(path, aside)
            except OSError as error:
                log.warning("%s is cut without a copy: %s", path, error)
                aside.unlink(missing_ok=True)
            os.truncate(path, 0)
