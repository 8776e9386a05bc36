"""Which processes are ours: one file a pod, so that the next platform ends what a killed one left behind.

A pod is recorded before its first process starts, under a random token that every process of the pod carries in
its environment; process ids follow with their creation time. Only a process that carries a recorded token, or has
a recorded id and that very creation time, is ever ended: never one that merely got the same number.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

TOKEN_VARIABLE = "LOCAL_PLATFORM_POD"  # noqa: S105 - a name, not a secret


@dataclass(frozen=True, slots=True)
class PodRecord:
    token: str
    processes: tuple[tuple[int, float], ...] = ()


class Ledger:
    """Records below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def name(self, service: str) -> PodRecord:
        """The record of a new pod, not yet on disk."""
        return PodRecord(token=f"{service}-{secrets.token_hex(8)}")

    def open(self, record: PodRecord) -> None:
        """Record a pod that is about to start; its first process must carry the token. Raises OSError."""
        self._write(record)

    def add(self, record: PodRecord, pid: int) -> PodRecord:
        """Record one more process of the pod; one that is already gone needs no record. Raises OSError."""
        try:
            created = psutil.Process(pid).create_time()
        except psutil.NoSuchProcess:
            return record
        grown = PodRecord(record.token, (*record.processes, (pid, created)))
        self._write(grown)
        return grown

    def close(self, record: PodRecord) -> None:
        """Forget a pod whose processes have ended."""
        self._path(record.token).unlink(missing_ok=True)

    def reap(self, grace: float) -> int:
        """End every process of every recorded pod and forget the pods; the number of processes ended."""
        records = [self._read(path) for path in sorted(self._folder.glob("*.json"))]
        if not records:
            return 0
        orphans = find_processes(records)
        for process in orphans:
            _signal(process, kill=False)
        _, alive = psutil.wait_procs(orphans, timeout=grace)
        for process in alive:
            _signal(process, kill=True)
        psutil.wait_procs(alive, timeout=grace)
        for record in records:
            self.close(record)
        for unfinished in self._folder.glob("*.tmp"):
            unfinished.unlink(missing_ok=True)
        return len(orphans)

    def _path(self, token: str) -> Path:
        return self._folder / f"{token}.json"

    def _write(self, record: PodRecord) -> None:
        path = self._path(record.token)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps({"token": record.token, "processes": record.processes}), encoding="utf-8")
        temporary.replace(path)

    @staticmethod
    def _read(path: Path) -> PodRecord:
        """A record damaged by a loss of power still tells the token: it is the file's name."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return PodRecord(path.stem, tuple((int(pid), float(created)) for pid, created in data["processes"]))
        except (ValueError, KeyError, TypeError):
            return PodRecord(path.stem)


def find_processes(records: Iterable[PodRecord]) -> list[psutil.Process]:
    """Living processes that belong to the recorded pods."""
    tokens = {record.token for record in records}
    known = {identity for record in records for identity in record.processes}
    return [process for process in psutil.process_iter() if _belongs(process, tokens, known)]


def _belongs(process: psutil.Process, tokens: set[str], known: set[tuple[int, float]]) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return (process.pid, process.create_time()) in known or process.environ().get(TOKEN_VARIABLE) in tokens
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _signal(process: psutil.Process, *, kill: bool) -> None:
    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return
