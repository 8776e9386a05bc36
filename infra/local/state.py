"""The state folder: the one place on disk that belongs to a running platform.

Holds the lock that keeps two platforms apart, the file that tells where the running one listens, the generated
secrets, and the folders for logs, volumes and pod records. Knows files and process ids, nothing of manifests.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

PLATFORM_FILE = "platform.json"


class StateError(Exception):
    """The state folder cannot be used: held by another platform, or damaged."""


@dataclass(frozen=True)
class Facts:
    """What a running platform tells: its addresses, the token of its admin pages, and whose process it is.

    `watches`: watched folder by bucket; `generated`: made values by the name of their ConfigMap or Secret.
    """

    platform: str
    token: str
    services: Mapping[str, str]
    watches: Mapping[str, str]
    generated: Mapping[str, Mapping[str, str]]
    pid: int = field(default_factory=os.getpid)
    create_time: float = field(default_factory=lambda: psutil.Process().create_time())


def write_private(path: Path, text: str) -> None:
    """Replace `path` as a whole, readable by the owner only: a reader sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class StateDir:
    """Paths below one state folder; made on first use, owner only."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock: int | None = None

    def folder(self, *parts: str) -> Path:
        path = self.root.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    @property
    def logs(self) -> Path:
        return self.folder("logs")

    def acquire(self) -> None:
        """Take the folder for this process; raises StateError when another platform runs on it.

        The lock dies with the process, so a platform that was killed leaves nothing to clean.
        """
        descriptor = os.open(self.folder() / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise StateError(f"another platform is running on {self.root}") from error
        self._lock = descriptor

    def release(self) -> None:
        """Withdraw the addresses and let the next platform in."""
        (self.root / PLATFORM_FILE).unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def announce(self, facts: Facts) -> None:
        """Write where this platform listens."""
        write_private(self.root / PLATFORM_FILE, json.dumps(asdict(facts), indent=2))

    def running(self) -> Facts | None:
        """The announced facts of the platform that runs on this folder now, or None."""
        try:
            facts = Facts(**json.loads((self.root / PLATFORM_FILE).read_text(encoding="utf-8")))
            alive = psutil.Process(facts.pid).create_time() == facts.create_time
        except (FileNotFoundError, psutil.NoSuchProcess, ValueError, TypeError):
            return None
        return facts if alive else None

    def generated(self, name: str, templates: Mapping[str, str]) -> dict[str, str]:
        """Values made from templates once and kept: `{random}` becomes 64 hex digits, `{state}` this folder.

        A template that changed is made anew; the others keep their value over restarts.
        """
        path = self.folder("generated") / f"{name}.json"
        kept = self._kept(path)
        values = {
            key: kept[key] if key in kept and kept[key]["template"] == template else self._generate(template)
            for key, template in templates.items()
        }
        if values != kept:
            write_private(path, json.dumps(values, indent=2))
        return {key: value["value"].replace("{state}", str(self.root)) for key, value in values.items()}

    @staticmethod
    def _kept(path: Path) -> dict[str, dict[str, str]]:
        """Secrets are never silently made anew: whoever holds the old ones would be locked out."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            return {key: {"template": one["template"], "value": one["value"]} for key, one in kept.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"{path} is damaged: remove it, and new values are made") from error

    @staticmethod
    def _generate(template: str) -> dict[str, str]:
        first, *others = template.split("{random}")
        value = first + "".join(secrets.token_hex(32) + text for text in others)
        return {"template": template, "value": value}
