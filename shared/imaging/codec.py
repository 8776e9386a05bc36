"""Files to arrays and back: every accepted format becomes upright 8-bit sRGB, every result leaves without metadata.

Knows OpenCV, numpy, Pillow, simplejpeg and the error tree; bytes in and out, never a file. Safe in several threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL.Image import fromarray

from shared.errors import InvalidOptionError
from shared.imaging.colour import profile, to_srgb
from shared.imaging.damage import reading
from shared.imaging.probe import Limits, check_size, format_name, open_picture, turn
from shared.imaging.sniff import AVIF, BMP, GIF, JPEG, PNG, TIFF, WEBP, Kind
from shared.imaging.unpack import base_and_alpha
from shared.imaging.writers import WRITERS
from shared.rejections import ImageTooLargeError

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

Plane = NDArray[np.uint8]

CONTENT_TYPES = {kind.name: kind.content_type for kind in (JPEG, PNG, WEBP, AVIF, TIFF, BMP, GIF)}
_LONGEST_SIDE = {"webp": 16383, "jpeg": 65500}
_LOST = ("premature end", "bad huffman code")
"""libjpeg's words for pixels that are not there; it goes on and leaves them grey."""
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
    """Decode a file in full, in this process (`shared.isolated.decode` is the one for bytes from outside).

    Raises what `probe` raises, and no other exception.
    """
    kind, image = open_picture(data, limits)
    with reading(kind, data):
        pixels, alpha = _jpeg(data, image) if kind is JPEG else _any(kind, data, image)
        check_size(pixels.shape[1::-1], limits)
    return _picture(pixels, alpha, turn(kind, image), format_name(kind, image))


def assembled(base: Plane, alpha: Plane | None, orientation: int, format: str) -> Picture:
    """The picture of planes that were unpacked elsewhere: `base` [h, w, 3] RGB or [h, w] grey, `alpha` [h, w]."""
    return _picture(_bgr(base), alpha, orientation, format)


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


def _picture(pixels: Plane, alpha: Plane | None, orientation: int, format: str) -> Picture:
    upright_alpha = None if alpha is None else _upright(alpha, orientation)
    return Picture(_upright(pixels, orientation), upright_alpha, format)


def _any(kind: Kind, data: bytes, image: ImageFile) -> tuple[Plane, Plane | None]:
    base, alpha = base_and_alpha(kind, data, image)
    return _bgr(np.asarray(base)), None if alpha is None else np.array(alpha)


def _jpeg(data: bytes, image: ImageFile) -> tuple[Plane, Plane | None]:
    """By libjpeg-turbo itself: Pillow's pixels in 60 % of its time, and it tells damage on which Pillow is silent."""
    transform = profile(image)
    decoded = _strict_jpeg(data, "RGB" if transform else "BGR") if image.mode in ("RGB", "L") else None
    if decoded is None:
        return _any(JPEG, data, image)
    if transform is None:
        return decoded, None
    return _bgr(np.asarray(to_srgb(JPEG, fromarray(decoded), transform)[0])), None


def _strict_jpeg(data: bytes, order: str) -> Plane | None:
    """[h, w, 3]; None where it finds something odd that costs no pixels, as stray bytes of some cameras."""
    import simplejpeg  # here: publish decodes nothing and does without the package

    try:
        return cast("Plane", simplejpeg.decode_jpeg(data, order, fastdct=False, fastupsample=False, strict=True))
    except ValueError as error:
        if any(words in str(error).lower() for words in _LOST):
            raise
        return None


def _bgr(base: Plane) -> Plane:
    return cast("Plane", cv2.cvtColor(base, cv2.COLOR_GRAY2BGR if base.ndim == 2 else cv2.COLOR_RGB2BGR))


def _upright(plane: Plane, orientation: int) -> Plane:
    swapped, flip = _TURNS.get(orientation, (False, None))
    plane = cast("Plane", cv2.transpose(plane)) if swapped else plane
    return plane if flip is None else cast("Plane", cv2.flip(plane, flip))
