"""Pictures with text for tests, written with Pillow's own font."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from shared.vision.protocols import Image as Pixels


def lettered(
    *texts: tuple[tuple[int, int], str, int],
    size: tuple[int, int] = (800, 450),
    ink: str = "black",
    paper: str = "white",
    angle: float = 0.0,
) -> Pixels:
    """Each text at its place and in its height, in pixels; the whole picture turned by `angle` degrees."""
    image = Image.new("RGB", size, paper)
    draw = ImageDraw.Draw(image)
    for place, text, height in texts:
        draw.text(place, text, font=ImageFont.load_default(height), fill=ink)
    turned = image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=paper)
    return np.ascontiguousarray(np.asarray(turned)[:, :, ::-1])


def png(pixels: Pixels) -> bytes:
    out = BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels[:, :, ::-1])).save(out, "PNG")
    return out.getvalue()
