"""The characters that a recogniser knows, out of its own metadata (`character`), one a line in a text file beside it.

Taken once, at fetch time, so that no function reads the graph for them. Walks the file's tags, needs no `onnx`.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from shared.errors import ModelInvalidError
from shared.models.wire import Span, fields

_METADATA, _KEY, _VALUE = 14, 1, 2
"""Field numbers of ModelProto and StringStringEntryProto in onnx.proto3."""
NAME = b"character"


def convert(source: Path, target: Path) -> None:
    """Write the characters of the graph `source`. Raises ModelInvalidError when it names none."""
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            found = dict(_entry(data, span) for number, _, span in fields(data, 0, len(data)) if number == _METADATA)
            text = found[NAME].decode()
        except (ValueError, IndexError, KeyError) as error:
            raise ModelInvalidError("The graph does not say which characters it knows.") from error
    lines = text.removesuffix("\n").split("\n")
    if any(len(line) == 0 for line in lines):
        raise ModelInvalidError("The graph's list of characters has a gap.")
    target.write_text("\n".join(lines), encoding="utf-8")


def _entry(data: mmap.mmap, span: Span) -> tuple[bytes, bytes]:
    """Name and value of one entry. Raises ValueError."""
    parts = {number: data[slice(*inner)] for number, _, inner in fields(data, *span) if inner}
    return parts.get(_KEY, b""), parts.get(_VALUE, b"")
