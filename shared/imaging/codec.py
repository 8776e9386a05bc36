"""Files to arrays and back: every accepted format becomes upright 8-bit sRGB, every result leaves without metadata.

Knows OpenCV, numpy, Pillow and the error tree; reads and writes bytes, never a file. Safe in several threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.errors import ImageTooLargeError, InvalidOptionError
from shared.imaging.colour import profile, to_srgb
from shared.imaging.damage import reading
from shared.imaging.depth import fit_key
from shared.imaging.probe import Limits, check_size, format_name, open_picture, turn
from shared.imaging.sniff import AVIF, BMP, GIF, JPEG, PNG, TIFF, WEBP
from shared.imaging.writers import WRITERS

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

Plane = NDArray[np.uint8]

CONTENT_TYPES = {kind.name: kind.content_type for kind in (JPEG, PNG, WEBP, AVIF, TIFF, BMP, GIF)}
_LONGEST_SIDE = {"webp": 16383, "jpeg": 65500}
_TURNS = {2: (False, 1), 3: (False, -1), 4: (False, 0), 5: (True, None), 6: (True, 1), 7: (True, -1), 8: (True, 0)}
"""What makes each Exif orientation upright (Exif 2.32, tag 0x0112): whether rows and columns are swapped, then the
flip code of cv2.flip."""


@dataclass(frozen=True)
class Picture:
    pixels: Plane
    """[h, w, 3], BGR, sRGB, upright, C-contiguous, writable; under transparent alpha the colours as stored."""
    alpha: Plane | None
    """[h, w], 0 clear, 255 opaque; None where the file has none."""
    format: str
    """As in Probe.format."""


def decode(data: bytes, limits: Limits) -> Picture:
    """Decode a file in full. Raises what `probe` raises, and no other exception."""
    kind, image = open_picture(data, limits)
    with reading(kind, data):
        transform = profile(image)
        fast = _plain_jpeg(data, image) if kind is JPEG and transform is None else None
        if fast is None:
            image.info.pop("xmp", None)  # Pillow's TIFF reader would turn by it
            image.load()
            check_size(image.size, limits)
            fit_key(kind, data, image)
            base, alpha = to_srgb(kind, image, transform)
            pixels, cover = _bgr(base), None if alpha is None else np.array(alpha)
        else:
            pixels, cover = fast, None
    orientation = turn(kind, image)
    cover = None if cover is None else _upright(cover, orientation)
    return Picture(_upright(pixels, orientation), cover, format_name(kind, image))


def encode(picture: Picture, format: str, quality: int) -> tuple[bytes, str]:
    """The file and its content type. `quality` 1..100, used by JPEG, WebP and AVIF.

    Alpha is kept exactly by PNG, WebP, AVIF and TIFF, by GIF if it knows only clear and opaque; else the picture is
    put on white. Raises InvalidOptionError for a format that is not written, ImageTooLargeError for a side that the
    format cannot hold.
    """
    _check_written(format)
    side, longest = max(picture.pixels.shape[:2]), _LONGEST_SIDE.get(format, 65535)
    if side > longest:
        raise ImageTooLargeError(f"{format} holds at most {longest} pixels a side.", context={"max_side": longest})
    return WRITERS[format](picture.pixels, picture.alpha, quality), CONTENT_TYPES[format]


def output_format(wanted: str, input_format: str) -> str:
    """The format to write: `wanted`, where "same" is the input's if that can be written and else jpeg."""
    if wanted == "same":
        return input_format if input_format in WRITERS else "jpeg"
    _check_written(wanted)
    return wanted


def _check_written(format: str) -> None:
    if format not in WRITERS:
        raise InvalidOptionError(f"Pictures are not written as {format!r}.", context={"field": "format"})


def _plain_jpeg(data: bytes, image: ImageFile) -> Plane | None:
    """OpenCV's decoder gives Pillow's pixels in two thirds of the time; None leaves hard and broken files to Pillow.

    It refuses cut files since 5.0, which test_img_08 holds it to.
    """
    if image.mode not in ("RGB", "L"):
        return None
    try:
        decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        return None
    return cast("Plane", decoded) if decoded is not None and decoded.shape[1::-1] == image.size else None


def _bgr(base: Image) -> Plane:
    code = cv2.COLOR_GRAY2BGR if base.mode == "L" else cv2.COLOR_RGB2BGR
    return cast("Plane", cv2.cvtColor(np.asarray(base), code))


def _upright(plane: Plane, orientation: int) -> Plane:
    swapped, flip = _TURNS.get(orientation, (False, None))
    plane = cast("Plane", cv2.transpose(plane)) if swapped else plane
    return plane if flip is None else cast("Plane", cv2.flip(plane, flip))
