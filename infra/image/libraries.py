"""Which of the system's shared libraries a folder of binaries needs, all the way down: the dynamic linker is asked."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

MAGIC = b"\x7fELF"
AT_ONCE = 50
GIVEN = ("libcuda.so.*", "libnvidia-*", "libnvinfer*", "libnvonnxparser*")
"""Never in an image: the driver's come with the node, TensorRT is an operator's choice."""
_FOUND = re.compile(r"^\s+(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)
_MISSING = re.compile(r"^\s+(\S+) => not found", re.MULTILINE)


@dataclass(frozen=True)
class Needs:
    found: frozenset[Path]
    missing: frozenset[str]


def needs(folder: Path) -> Needs:
    """Of the binaries below this folder; what lies there itself is found there at run time."""
    binaries = sorted(_binaries(folder))
    own = {path.name for path in binaries}
    found: set[Path] = set()
    missing: set[str] = set()
    for begin in range(0, len(binaries), AT_ONCE):
        told = _ldd(binaries[begin : begin + AT_ONCE])
        found |= {Path(path) for path in _FOUND.findall(told)}
        missing |= set(_MISSING.findall(told))
    outside = {path for path in found if not path.is_relative_to(folder)}
    unknown = {name for name in missing - own if not any(fnmatch(name, pattern) for pattern in GIVEN)}
    return Needs(frozenset(outside), frozenset(unknown))


def _binaries(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if ".so" in name or os.access(path, os.X_OK):
                with path.open("rb") as file:
                    if file.read(len(MAGIC)) == MAGIC:
                        yield path


def _ldd(binaries: list[Path]) -> str:
    """Its exit status says that one of many is no dynamic binary, which is no fault."""
    done = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False)
    return f"{binaries[0]}:\n{done.stdout}"
