"""What a picture is, from its headers, for bytes from outside: `shared.imaging.probe` with its libraries held apart.

The headers of HEIC, AVIF and TIFF are read in a process of their own, since most of what went wrong in the libraries
for these formats went wrong there; all other formats are read here. Loads no numpy.
"""

from __future__ import annotations

import threading
from dataclasses import fields

from shared.errors import JsonValue
from shared.imaging import probe as here
from shared.imaging.probe import Limits, Probe
from shared.imaging.sniff import AVIF, HEIC, TIFF, sniff
from shared.isolated.helper import Helper
from shared.isolated.wire import HEADERS
from shared.rejections import MediaCorruptError

APART = frozenset({HEIC, AVIF, TIFF})
"""Formats with a history of libraries that hostile files took over."""
_ONE = threading.Lock()
"""One at a time: each is in memory three times meanwhile, here, on the way and there."""
_helper = Helper(HEADERS)


def probe(data: bytes, limits: Limits) -> Probe:
    """As `shared.imaging.probe.probe`, and as Helper.ask."""
    if sniff(data) not in APART:
        return here.probe(data, limits)
    with _ONE:
        found, planes = _helper.ask(data, limits)
    planes.close()
    return _probe(found.get("probe"))


def _probe(found: JsonValue) -> Probe:
    """Raises MediaCorruptError for what is no answer: what hostile bytes ran in is not believed."""
    values = found if isinstance(found, dict) else {}
    shape = {"int": int, "str": str, "bool": bool}
    if not all(type(values.get(entry.name)) is shape[str(entry.type)] for entry in fields(Probe)):
        raise MediaCorruptError
    return Probe(**values)  # type: ignore[arg-type]
