"""Files to arrays, for bytes from outside: `shared.imaging.codec.decode` with its libraries held apart.

HEIC, AVIF and TIFF are unpacked in a process of their own, within limits of memory and time; all other formats are
decoded here. Knows the codec and the helper.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np

from shared.errors import JsonValue
from shared.imaging import codec
from shared.imaging.codec import Picture, Plane
from shared.imaging.probe import Limits, check_size
from shared.imaging.sniff import sniff
from shared.isolated.headers import APART
from shared.isolated.helper import Helper
from shared.isolated.wire import PIXELS
from shared.rejections import MediaCorruptError

_helper = Helper(PIXELS)


def decode(data: bytes, limits: Limits) -> Picture:
    """As `shared.imaging.codec.decode`, and as Helper.ask."""
    if sniff(data) not in APART:
        return codec.decode(data, limits)
    found, planes = _helper.ask(data, limits)
    with planes:
        return _picture(found, planes, limits)


def _picture(found: Mapping[str, JsonValue], planes: BinaryIO, limits: Limits) -> Picture:
    """Raises MediaCorruptError for what is no answer: what hostile bytes ran in is not believed."""
    match found:
        case {"size": [int(width), int(height)], "orientation": int(turn), "format": str(name)}:
            check_size((width, height), limits)
            shape = (height, width) if found.get("grey") else (height, width, 3)
            base = _plane(planes, 0, shape)
            alpha = _plane(planes, base.size, (height, width)) if found.get("alpha") else None
            return codec.assembled(base, alpha, turn, name)
    raise MediaCorruptError


def _plane(planes: BinaryIO, at: int, shape: tuple[int, ...]) -> Plane:
    plane: Plane = np.empty(shape, np.uint8)
    view = plane.reshape(-1).data
    while view:
        size = os.preadv(planes.fileno(), [view], at)
        if size == 0:
            raise MediaCorruptError
        view, at = view[size:], at + size
    return plane
