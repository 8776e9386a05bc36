"""One writer for each format that goes out. Nothing of the input but its pixels and alpha reaches a writer.

Knows OpenCV and Pillow. Every writer is a function (pixels, alpha, quality) -> bytes and gives the same bytes for
the same arrays on every machine. Formats that hold no alpha get the picture on white.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import cv2
import numpy as np
from PIL import Image

from shared.errors import WakeswapError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plane: TypeAlias = NDArray[np.uint8]
    Writer: TypeAlias = Callable[[Plane, Plane | None, int], bytes]

_FULL_COLOUR = 90
"""From this quality on JPEG keeps colour at full resolution: halved, it bleeds at lips and eyes."""
_CLEAR = 255


def flatten(pixels: Plane, alpha: Plane | None, page: int = 255) -> Plane:
    """The picture on white, or on another grey `page`, rounded to the nearest level; [h, w, 3] in and out."""
    if alpha is None:
        return pixels
    cover = alpha.astype(np.uint16)
    rest = page * (255 - cover) + 127
    return np.dstack([((pixels[..., c] * cover + rest) // 255).astype(np.uint8) for c in range(3)])


def _jpeg(pixels: Plane, alpha: Plane | None, quality: int) -> bytes:
    full, half = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420
    sampling = full if quality >= _FULL_COLOUR else half
    parameters = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    return _by_opencv(".jpg", flatten(pixels, alpha), parameters)


def _png(pixels: Plane, alpha: Plane | None, _quality: int) -> bytes:
    # measured at 1080p: level 2 and one filter, 0.1 s; zlib's default 6, 0.5 s for 10 % less
    parameters = [cv2.IMWRITE_PNG_COMPRESSION, 2, cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_SUB]
    return _by_opencv(".png", pixels if alpha is None else np.dstack([pixels, alpha]), parameters)


def _bmp(pixels: Plane, alpha: Plane | None, _quality: int) -> bytes:
    return _by_opencv(".bmp", flatten(pixels, alpha), [])


def _webp(pixels: Plane, alpha: Plane | None, quality: int) -> bytes:
    return _by_pillow(_image(pixels, alpha), "WEBP", quality=quality, alpha_quality=100, exact=True)


def _avif(pixels: Plane, alpha: Plane | None, quality: int) -> bytes:
    # libaom's output depends on the number of threads; speed 8 halves the time of 6 for 0.3 dB
    lossless_alpha = {"a:lossless": "1"}
    return _by_pillow(_image(pixels, alpha), "AVIF", quality=quality, speed=8, max_threads=1, advanced=lossless_alpha)


def _tiff(pixels: Plane, alpha: Plane | None, _quality: int) -> bytes:
    return _by_pillow(_image(pixels, alpha), "TIFF", compression="tiff_adobe_deflate")


def _gif(pixels: Plane, alpha: Plane | None, _quality: int) -> bytes:
    """GIF knows only clear and opaque: an alpha of just these is kept, any other is flattened."""
    if alpha is None or not np.isin(alpha, (0, 255)).all():
        return _by_pillow(_image(flatten(pixels, alpha), None).quantize(256), "GIF")
    indexed = _image(pixels, None).quantize(_CLEAR)
    indexed.paste(_CLEAR, mask=Image.fromarray(255 - alpha))
    return _by_pillow(indexed, "GIF", transparency=_CLEAR)


WRITERS: dict[str, Writer] = {
    "jpeg": _jpeg,
    "png": _png,
    "webp": _webp,
    "avif": _avif,
    "tiff": _tiff,
    "bmp": _bmp,
    "gif": _gif,
}


def _by_opencv(suffix: str, pixels: Plane, parameters: list[int]) -> bytes:
    done, buffer = cv2.imencode(suffix, pixels, parameters)
    if not done:
        raise WakeswapError(f"OpenCV did not write {suffix}.")
    return buffer.tobytes()


def _image(pixels: Plane, alpha: Plane | None) -> Image.Image:
    rgb = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
    return Image.fromarray(rgb if alpha is None else np.dstack([rgb, alpha]))


def _by_pillow(image: Image.Image, name: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()
