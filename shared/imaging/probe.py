"""What a picture is, from its headers: the check before a job exists, within a bound of time and memory.

Knows Pillow's readers and the error tree; neither numpy nor OpenCV is loaded. The readers are called one by one
instead of through PIL.Image.open: so no other format can answer, and no process-wide pixel limit needs changing.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from shared.imaging.damage import reading
from shared.imaging.exif import UPRIGHT, orientation
from shared.imaging.sniff import HEIC, JPEG, TIFF, Kind, claimed_size, is_sequence, sniff
from shared.rejections import (
    AnimationUnsupportedError,
    ImageTooLargeError,
    ImageTooSmallError,
    UnsupportedMediaTypeError,
)

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile
    from PIL.TiffImagePlugin import TiffImageFile

_NEW_SUBFILE_TYPE, _DNG_VERSION = 254, 50706


@dataclass(frozen=True)
class Limits:
    max_pixels: int = 50_000_000
    """Width times height. Decoding takes 3 to 4 bytes a pixel, 16-bit and progressive files up to 10."""
    max_side: int = 16384
    min_side: int = 16
    """Pixels; nothing smaller holds a face, and resizing steps fail on single rows."""


@dataclass(frozen=True)
class Probe:
    format: str
    """jpeg, mpo, png, gif, webp, tiff, bmp, avif or heic."""
    content_type: str
    width: int
    """Upright, as the picture is seen."""
    height: int
    frames: int
    """Pictures that will be processed: always 1, since whatever has more is refused.

    The one exception is mpo, a camera's JPEG followed by previews or the other eye's view: its first picture counts.
    """
    has_alpha: bool


class _Header(io.BytesIO):
    """A file whose headers are being read. Millions of empty segments would keep a reader busy for a minute."""

    reads_left = 300_000
    """Enough for a still GIF of 35 MB, the chattiest of the formats, and reached within half a second."""

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads_left -= 1
        if self.reads_left < 0:
            raise OSError("too many segments")
        return super().read(size)


def probe(data: bytes, limits: Limits) -> Probe:
    """Read the headers of a file.

    Raises MediaEmptyError, UnsupportedMediaTypeError, ImageTooLargeError, ImageTooSmallError,
    AnimationUnsupportedError, MediaTruncatedError or MediaCorruptError, and no other exception.
    """
    kind, image = open_picture(data, limits)
    width, height = image.size
    if turn(kind, image) > 4:
        width, height = height, width
    return Probe(format_name(kind, image), kind.content_type, width, height, 1, image.has_transparency_data)


def open_picture(data: bytes, limits: Limits) -> tuple[Kind, ImageFile]:
    """The file's format and its reader, headers read and judged, pixels not yet decoded. Errors as for `probe`."""
    kind = sniff(data)
    if is_sequence(kind, data):
        raise AnimationUnsupportedError("The file holds a film.")
    with reading(kind, data):
        check_size(claimed_size(kind, data), limits)
        source = _Header(data)
        image = _reader(kind)(source)
        check_size(image.size, limits)
        _refuse_previews(kind, data, image)
        if getattr(image, "is_animated", False):
            raise AnimationUnsupportedError("The file holds more than one picture.")
        source.reads_left = sys.maxsize
    return kind, image


def check_size(size: tuple[int, int] | None, limits: Limits) -> None:
    if size is None:
        return
    width, height = size
    facts = {"width": width, "height": height}
    if width * height > limits.max_pixels or max(size) > limits.max_side:
        bounds = {"max_pixels": limits.max_pixels, "max_side": limits.max_side}
        raise ImageTooLargeError(f"{width} x {height} pixels are too many.", context=facts | bounds)
    if min(size) < limits.min_side:
        bounds = {"min_side": limits.min_side}
        raise ImageTooSmallError(f"{width} x {height} pixels are too few.", context=facts | bounds)


def turn(kind: Kind, image: ImageFile) -> int:
    """The Exif orientation still to be applied to the pixels of this reader.

    Readers of TIFF and HEIC apply it themselves. For AVIF Pillow puts the container's own rotation, the only one
    that counts there, into the Exif block. A PNG may carry the block after its pixels: then it is known once decoded.
    """
    exif = image.info.get("exif")
    return orientation(exif) if isinstance(exif, bytes) and kind not in (TIFF, HEIC) else UPRIGHT


def format_name(kind: Kind, image: ImageFile) -> str:
    return "mpo" if kind is JPEG and "mp" in image.info else kind.name


def _reader(kind: Kind) -> type[ImageFile]:
    module, _, name = kind.reader.partition(":")
    try:
        return cast("type[ImageFile]", getattr(import_module(module), name))
    except ModuleNotFoundError as error:
        raise UnsupportedMediaTypeError(f"This installation does not read {kind.name}.") from error


def _refuse_previews(kind: Kind, data: bytes, image: ImageFile) -> None:
    """Camera raw files are TIFF files whose first picture is a small preview: delivering that would be a lie."""
    if kind is not TIFF:
        return
    tags = cast("TiffImageFile", image).tag_v2
    if data[8:10] == b"CR" or _DNG_VERSION in tags or tags.get(_NEW_SUBFILE_TYPE, 0) == 1:
        raise UnsupportedMediaTypeError("Camera raw files are not supported.")
