"""What a fork of the helper does with hostile bytes: read their headers, or unpack their pixels.

Imported by the helper only, so that everything a reader needs is loaded before nothing more can be opened. A helper
for headers loads no numpy. Knows the pictures and the limits.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING

from shared.errors import JsonValue, RejectedError
from shared.imaging.probe import Limits, probe
from shared.imaging.sniff import AVIF, HEIC, TIFF
from shared.isolated import limits as caps
from shared.isolated.wire import HEADERS, PIXELS, Task, read_all, write_all

if TYPE_CHECKING:
    from shared.imaging.unpack import Unpacked

_ROWS = 256
_THREADS = 4
"""Most threads of one decoder: each takes address space for its stack."""
_EVERY = ("PIL.TiffTags", "PIL.ExifTags", "PIL.ImageFile", "PIL.ImageSequence", "xml.etree.ElementTree")


def load(name: str) -> None:
    """Import what a task needs, in the helper itself."""
    for kind in (HEIC, AVIF, TIFF):
        with suppress(ModuleNotFoundError):  # probing says so when such a picture comes
            import_module(kind.reader.partition(":")[0])
    for module in _EVERY:
        import_module(module)
    if name == PIXELS:
        import_module("shared.imaging.unpack")
    _few_threads()


def run(task: Task, source: int, planes: int, _: int) -> JsonValue:
    """The answer, a JSON object: what was found, or the error of our tree. Confines this process before it reads."""
    data = read_all(source)
    limits = Limits(task.max_pixels, task.max_side, task.min_side)
    used = caps.address_space()
    caps.confine(caps.for_header(len(data)), used)
    try:
        header = probe(data, limits)
        if task.name == HEADERS:
            return {"probe": asdict(header)}
        from shared.imaging.unpack import unpack

        caps.confine(caps.for_pixels(len(data), header.width * header.height), used)
        return _written(unpack(data, limits), planes)
    except RejectedError as error:
        return {"error": error.code, "detail": error.detail, "context": error.context}
    except MemoryError:
        return {"memory": True}


def _written(found: Unpacked, planes: int) -> JsonValue:
    width, height = found.base.size
    for image in (found.base, found.alpha):
        if image is not None:
            for top in range(0, height, _ROWS):  # never the whole plane a second time
                write_all(planes, image.crop((0, top, width, min(top + _ROWS, height))).tobytes())
    return {
        "size": [width, height],
        "grey": found.base.mode == "L",
        "alpha": found.alpha is not None,
        "orientation": found.orientation,
        "format": found.format,
    }


def _few_threads() -> None:
    threads = min(_THREADS, os.cpu_count() or 1)
    setattr(import_module("PIL.AvifImagePlugin"), "DEFAULT_MAX_THREADS", threads)  # noqa: B010 - untyped there
    with suppress(ModuleNotFoundError):
        import_module("pillow_heif").options.DECODE_THREADS = threads
