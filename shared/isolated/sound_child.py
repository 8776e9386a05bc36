"""What the process of `shared.isolated.sound` does: holds itself to its limits, then works on the files that it got.

Knows the limits and the videos' sound.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from shared.isolated.limits import address_space, confine
from shared.isolated.sound import REFUSED, caps
from shared.rejections import MediaCorruptError
from shared.video import sound

_LATER = (
    "av.audio.stream",
    "av.subtitles.stream",
    "av.video.stream",
    "av.audio.codeccontext",
    "av.video.codeccontext",
    "av.subtitles.codeccontext",
    "av.filter.graph",
)
"""What PyAV imports when it opens a file: nothing can be opened then."""


def main(source: str, out: str, index: str, name: str) -> None:
    """Numbers of the files, the track's number and the encoder's name. Ends the process with 0, or `REFUSED`."""
    for module in _LATER:
        import_module(module)
    with open(f"/dev/fd/{source}", "rb") as held, open(f"/dev/fd/{out}", "r+b") as written:
        confine(caps(os.fstat(held.fileno()).st_size), address_space())
        try:
            sound.transcode(held, int(index), name, written)
        except (MediaCorruptError, MemoryError):
            sys.exit(REFUSED)
