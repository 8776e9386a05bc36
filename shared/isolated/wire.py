"""What the two sides of the helper's socket agree on: the message, the files that go with it, and how they are filled.

Knows the standard library and the JSON type.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.errors import JsonValue

HEADERS, PIXELS = "headers", "pixels"
"""Tasks: what a picture says of itself, and its planes."""
FACTS, FRAMES = "facts", "frames"
"""Tasks: what a video is, and its frames."""
FILES = 3
"""File descriptors that go with a message: the picture or video, its planes, the socket for the answer."""
MAX_MESSAGE = 4096
_BLOCK = 2**24


@dataclass(frozen=True)
class Task:
    """The message, as JSON."""

    name: str
    max_pixels: int
    max_side: int
    min_side: int
    words: Mapping[str, JsonValue] = field(default_factory=dict)
    """What only this task needs to know."""


def write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view[:_BLOCK]) :]


def read_all(file: int) -> bytes:
    """From the start, wherever others have left the place; in one piece, so that it is in memory once."""
    size = os.fstat(file).st_size
    data = os.pread(file, size, 0)
    if len(data) != size:
        raise OSError("The picture came in part.")
    return data
