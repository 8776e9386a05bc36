"""Where the system's files in an image come from: Debian's packages, their versions and licences, and Python itself.

Scanners look for the packages in /var/lib/dpkg/status.d, as in other images without a package manager; the list of
parts (CycloneDX) names them beside the Python packages.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from infra.image.root import Root

STATUS = "/var/lib/dpkg/status.d"
_OWNER = re.compile(r"^([a-z0-9][a-z0-9+.-]+(?::[a-z0-9]+)?): /")


class Component(TypedDict):
    """As CycloneDX writes it."""

    type: str
    name: str
    version: str
    purl: str


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    machine: str
    status: str
    """What dpkg knows of it, as in its database."""

    @property
    def component(self) -> Component:
        purl = f"pkg:deb/debian/{self.name}@{self.version.replace('+', '%2B')}?arch={self.machine}"
        return Component(type="library", name=self.name, version=self.version, purl=purl)


def owners(files: Iterable[Path]) -> list[Package]:
    """The Debian packages that these files belong to; some belong to none."""
    spellings = {str(path) for path in files} | {str(path).removeprefix("/usr") for path in files}
    asked = ["dpkg-query", "--search", *sorted(spellings)]
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    names = {match[1] for line in told.splitlines() if (match := _OWNER.match(line))}
    return [_package(name) for name in sorted(names)]


def _package(name: str) -> Package:
    status = subprocess.run(["dpkg-query", "--status", name], capture_output=True, text=True, check=True).stdout
    fields = dict(line.split(": ", 1) for line in status.splitlines() if re.match(r"\S+: ", line))
    return Package(fields["Package"], fields["Version"], fields["Architecture"], status)


def leave(packages: Iterable[Package], root: Root) -> None:
    """What scanners look for, and what the licences ask to be passed on."""
    for package in packages:
        root.write(f"{STATUS}/{package.name}", package.status)
        licence = Path("/usr/share/doc", package.name, "copyright")
        if licence.exists():
            root.place(licence)


def complete(parts: Path, packages: Iterable[Package]) -> str:
    """The list of parts with what lies below the Python packages."""
    document = json.loads(parts.read_text(encoding="utf-8"))
    version = platform.python_version()
    python = Component(type="application", name="python", version=version, purl=f"pkg:generic/python@{version}")
    document["components"] += [python, *(package.component for package in packages)]
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
