"""Samples that are not 8 bits wide, scaled to 8 bits: black stays black, the format's white becomes 255.

Knows numpy and Pillow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from shared.imaging.sniff import PNG, TIFF, Kind

if TYPE_CHECKING:
    from PIL.TiffImagePlugin import TiffImageFile

WIDE_MODES = frozenset({"I;16", "I;16B", "I;16L", "I;16N", "I", "F"})
_PHOTOMETRIC, _BITS = 262, 258
_WHITES = (1.0, 255.0, 65535.0)


def narrow(kind: Kind, image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """A grey picture of a wide mode as mode L, and its alpha where one grey value is declared transparent."""
    values = np.asarray(image)
    tags = cast("TiffImageFile", image).tag_v2 if kind is TIFF else {}
    if image.mode.startswith("I;16"):
        white = 4095 if tags.get(_BITS) == (12,) else 65535
        grey = _table(white)[values]
    else:
        grey = _scaled(values, image.mode == "F")
    if tags.get(_PHOTOMETRIC) == 0:  # WhiteIsZero, which Pillow turns round for 8 bits only
        grey = 255 - grey
    key = image.info.get("transparency")
    alpha = None if key is None else Image.fromarray(np.where(values == key, 0, 255).astype(np.uint8))
    return Image.fromarray(grey), alpha


def fit_key(kind: Kind, data: bytes, image: Image.Image) -> None:
    """Bring a PNG's transparent colour to the 8-bit scale that Pillow gives the pixels, but not the colour."""
    key = image.info.get("transparency")
    bits = data[24] if kind is PNG else 8
    if image.mode == "RGB" and bits == 16 and isinstance(key, tuple):
        image.info["transparency"] = tuple(value >> 8 for value in key)
    elif image.mode == "L" and bits < 8 and isinstance(key, int):
        image.info["transparency"] = key * 255 // (2**bits - 1)


def _table(white: int) -> NDArray[np.uint8]:
    levels: NDArray[np.uint8] = np.rint(np.arange(65536) * (255 / white)).clip(0, 255).astype(np.uint8)
    return levels


def _scaled(values: NDArray[np.generic], real: bool) -> NDArray[np.uint8]:
    """Integers and floats name no white: it is the smallest usual one that holds the brightest sample."""
    finite = np.nan_to_num(values.astype(np.float32), posinf=0.0, neginf=0.0).clip(0)
    brightest = float(finite.max(initial=0))
    white = next((white for white in (_WHITES if real else _WHITES[1:]) if brightest <= white), brightest)
    levels: NDArray[np.uint8] = np.rint(finite / np.float32(white) * 255).astype(np.uint8)
    return levels
