"""Write what a requirements file comes down to: every distribution with its version and its wheels' digests.

    python -m infra.image.pins [--alone] <requirements file> <pins file>

The wheels are those for the image's Python on both kinds of machine that the image is built for; with `--alone` for
x86_64, and of exactly what the file names. Knows pip and its installation report, nothing of the product.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypedDict

PYTHON = "3.11"
MACHINES = ("x86_64", "aarch64")
GLIBC = range(17, 37)
"""manylinux_2_17 is the oldest that is still built for, 2.36 is Debian 12's."""

Digests = dict[str, set[str]]
"""`name==version` -> `algorithm:digest` of its wheels."""


class Archive(TypedDict):
    hashes: Mapping[str, str]


class Download(TypedDict):
    archive_info: Archive


class Core(TypedDict):
    name: str
    version: str


class Item(TypedDict):
    metadata: Core
    download_info: Download


def main() -> int:
    parser = argparse.ArgumentParser(prog="infra.image.pins", description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("pins", type=Path)
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    write(asked.source, asked.pins, alone=asked.alone)
    return 0


def write(source: Path, pins: Path, *, alone: bool) -> None:
    found: Digests = {}
    machines = MACHINES[:1] if alone else MACHINES
    for machine in machines:
        merge(found, machine, report(source, machine, alone=alone))
    head = f"# Written by `make pins` from {source.name} beside it; for {' and '.join(machines)}."
    lines = [f"{pin} {' '.join(f'--hash={digest}' for digest in sorted(found[pin]))}" for pin in sorted(found)]
    pins.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def merge(found: Digests, machine: str, items: Iterator[Item]) -> None:
    """The same versions for each machine, or one image would not be the other."""
    new: Digests = {}
    for item in items:
        digests = {f"{name}:{digest}" for name, digest in item["download_info"]["archive_info"]["hashes"].items()}
        new[f"{item['metadata']['name'].lower().replace('_', '-')}=={item['metadata']['version']}"] = digests
    if found and found.keys() != new.keys():
        raise SystemExit(f"other versions for {machine}: {sorted(found.keys() ^ new.keys())}")
    for pin, digests in new.items():
        found.setdefault(pin, set()).update(digests)


def report(source: Path, machine: str, *, alone: bool) -> Iterator[Item]:
    """What pip would install into an empty environment, from wheels alone: the image has no compiler."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-"]
    command += ["--only-binary", ":all:", "--target", "/nowhere", "--python-version", PYTHON, "--implementation", "cp"]
    for platform in (*(f"manylinux_2_{minor}_{machine}" for minor in reversed(GLIBC)), f"manylinux2014_{machine}"):
        command += ["--platform", platform]
    done = subprocess.run(
        [*command, *(["--no-deps"] if alone else []), "-r", str(source)], stdout=subprocess.PIPE, check=True
    )
    yield from json.loads(done.stdout)["install"]


if __name__ == "__main__":
    sys.exit(main())
