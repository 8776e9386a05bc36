"""The half of decoding in which a format's own library runs: bytes to planes of 8-bit sRGB, not yet turned upright.

Apart from `codec`, because it is what a process of its own does for formats with a history. Knows Pillow, numpy and
the error tree; no OpenCV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.imaging.colour import profile, to_srgb
from shared.imaging.damage import reading
from shared.imaging.depth import fit_key
from shared.imaging.probe import Limits, check_size, format_name, open_picture, turn

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

    from shared.imaging.sniff import Kind


@dataclass(frozen=True)
class Unpacked:
    base: Image
    """Mode RGB or L."""
    alpha: Image | None
    """Mode L."""
    orientation: int
    """Exif's number for what is still to be turned."""
    format: str
    """As in Probe.format."""


def unpack(data: bytes, limits: Limits) -> Unpacked:
    """Raises what `probe` raises, and no other exception."""
    kind, image = open_picture(data, limits)
    with reading(kind, data):
        base, alpha = base_and_alpha(kind, data, image)
        check_size(base.size, limits)
    return Unpacked(base, alpha, turn(kind, image), format_name(kind, image))


def base_and_alpha(kind: Kind, data: bytes, image: ImageFile) -> tuple[Image, Image | None]:
    """An opened file as mode RGB or L, and its alpha as mode L. Raises whatever the reader raises."""
    transform = profile(image)
    image.info.pop("xmp", None)  # Pillow's TIFF reader would turn by it
    image.load()
    fit_key(kind, data, image)
    return to_srgb(kind, image, transform)
