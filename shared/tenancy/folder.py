"""Tenants from a folder of `<tenant>.yaml`, such as a mounted ConfigMap, read again when a file changes.

A file that cannot be used leaves its tenant as it was, and says so in the log and in a gauge; it never stops the
process or harms another tenant. What changed is told by stat, at most once a second: Kubernetes swaps a symbolic
link under the files' own, so that all of them are other files from one moment to the next. Thread-safe.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from shared.errors import ConfigError
from shared.tenancy import policy, yaml_text
from shared.tenancy.tenant import Tenant

SUFFIX = ".yaml"
MAX_FILE_BYTES = 262_144
LOOK_SECONDS = 1.0
Stamp = tuple[int, ...]

log = logging.getLogger(__name__)


class Meter(Protocol):
    """Where it is told how many files are in use and how many are not."""

    def gauge(self, name: str, value: float, **labels: str) -> None: ...


@dataclass(frozen=True)
class Contents:
    """The folder at one moment."""

    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    """Tenants that have a file, of which no version could ever be used."""


@dataclass(frozen=True)
class _File:
    stamp: Stamp
    text: str
    tenant: Tenant | None
    """From the last version that could be used."""
    problem: str = ""


def read(path: Path, now: float) -> Tenant:
    """The tenant of one file. Raises ConfigError whose context names the field."""
    return parse(path.name, _text(path), now)


def parse(file_name: str, text: str, now: float) -> Tenant:
    """The tenant that a file of this name with this text describes. Raises ConfigError as `read` does."""
    if not file_name.endswith(SUFFIX):
        raise ConfigError(f"The file must be called <tenant>{SUFFIX}.", context={"field": "file"})
    return policy.tenant("", file_name.removesuffix(SUFFIX), yaml_text.loads(text), now)


class TenantFolder:
    def __init__(
        self,
        path: Path,
        *,
        taken: frozenset[str] = frozenset(),
        secrets: Mapping[str, str] | None = None,
        meter: Meter | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`taken`: names that the folder may not have; `secrets`: what webhooks are signed with, by tenant.

        Raises ConfigError when there is no such folder, or it cannot be read.
        """
        self._path = path
        self._taken = taken
        self._secrets = dict(secrets or {})
        self._meter = meter
        self._clock = clock
        self._looking = threading.Lock()
        self._next_look = 0.0
        self._files: dict[str, _File] = {}
        self._fault = ""
        self._contents = Contents()
        self.contents()
        if self._fault:
            where = f"WAKESWAP_TENANTS_FOLDER: {str(path)!r}"
            raise ConfigError(f"{where} cannot be read: {self._fault}.", context={"field": "folder"})

    def contents(self) -> Contents:
        """What the folder says, at most a second late. While one thread reads, the others get what was before."""
        if time.monotonic() >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._next_look = time.monotonic() + LOOK_SECONDS
                self._look()
            finally:
                self._looking.release()
        return self._contents

    def _look(self) -> None:
        try:
            stamps = dict(_stamps(self._path))
        except OSError as error:
            self._tell_fault(f"{error.strerror}")
            return
        self._tell_fault("")
        if stamps == {name: file.stamp for name, file in self._files.items()}:
            return
        before, self._files = self._files, {}
        for name, stamp in sorted(stamps.items()):
            self._files[name] = self._file(name, stamp, before.get(name))
        for name in sorted(set(before) - set(stamps)):
            log.info("tenant file removed", extra={"file": name})
        self._contents = self._combined()

    def _file(self, name: str, stamp: Stamp, before: _File | None) -> _File:
        if before is not None and before.stamp == stamp:
            return before
        text = ""
        try:
            text = _text(self._path / name)
            if before is not None and before.text == text:
                return replace(before, stamp=stamp)
            tenant = self._tenant(name, text)
        except ConfigError as error:
            found = _File(stamp, text, before.tenant if before else None, f"{error.context['field']}: {error.detail}")
        else:
            found = _File(stamp, text, tenant)
        _tell(name, found, before)
        return found

    def _tenant(self, name: str, text: str) -> Tenant:
        found = parse(name, text, self._clock())
        if found.name in self._taken:
            raise ConfigError("The tenant stands in WAKESWAP_TENANTS too.", context={"field": "name"})
        return replace(found, webhook=replace(found.webhook, secret=self._secrets.get(found.name, "")))

    def _combined(self) -> Contents:
        tenants = {file.tenant.name: file.tenant for file in self._files.values() if file.tenant}
        names = {name.removesuffix(SUFFIX) for name in self._files}
        if self._meter is not None:
            self._meter.gauge("tenant_files", len(self._files))
            self._meter.gauge("tenant_files_unusable", sum(bool(file.problem) for file in self._files.values()))
        return Contents(tenants, frozenset(names - set(tenants) - self._taken))

    def _tell_fault(self, fault: str) -> None:
        """The folder itself: said once when it cannot be read, and once when it can again."""
        if fault != self._fault:
            if fault:
                log.error("tenants folder not readable, every tenant stays as it was: %s", fault)
            else:
                log.info("tenants folder readable again")
            self._fault = fault


def _tell(name: str, found: _File, before: _File | None) -> None:
    """One line for what is new about a file."""
    if not found.problem:
        log.info("tenant file read", extra={"file": name})
    elif before is None or before.problem != found.problem:
        what = "its tenant stays as it was" if found.tenant else "its tenant cannot be served"
        log.error("tenant file not usable, %s: %s", what, found.problem, extra={"file": name})


def _stamps(folder: Path) -> Iterator[tuple[str, Stamp]]:
    """(file name, what changes when the file does) of every YAML file. Raises OSError."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.name.endswith((SUFFIX, ".yml")):
                continue
            try:
                found = entry.stat()
            except FileNotFoundError:  # removed since, or a link to what was
                continue
            if stat.S_ISREG(found.st_mode):
                times = (found.st_mtime_ns, found.st_ctime_ns)
                yield entry.name, (found.st_dev, found.st_ino, found.st_size, *times)


def _text(path: Path) -> str:
    """Raises ConfigError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise ConfigError(f"Has more than {MAX_FILE_BYTES} bytes.", context={"field": "file"})
        return data.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot be read: {error.strerror}.", context={"field": "file"}) from error
    except UnicodeDecodeError:
        raise ConfigError("Is not UTF-8.", context={"field": "file"}) from None
