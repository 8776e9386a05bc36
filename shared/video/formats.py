"""Pixel formats: which planes a decoded frame has, and which planar format comes nearest to one that has none.

Names are FFmpeg's. Knows the standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_NAME = re.compile(r"(yuva?|gbra?|gray)(410|411|420|422|440|444)?(p?)(9|10|12|14|16)?(le)?")
_SHIFTS = {"410": (2, 2), "411": (2, 0), "420": (1, 1), "422": (1, 0), "440": (0, 1), "444": (0, 0)}
"""Powers of two by which the colour planes are narrower and lower than the first."""
_NEAREST = {
    "nv12": "yuv420p",
    "nv21": "yuv420p",
    "nv16": "yuv422p",
    "nv24": "yuv444p",
    "p010le": "yuv420p10le",
    "p012le": "yuv420p12le",
    "p016le": "yuv420p16le",
    "p210le": "yuv422p10le",
    "p410le": "yuv444p10le",
    "yuyv422": "yuv422p",
    "yvyu422": "yuv422p",
    "uyvy422": "yuv422p",
    "uyyvyy411": "yuv411p",
    "y210le": "yuv422p10le",
    "xv30le": "yuv444p10le",
    "xv36le": "yuv444p12le",
    "vuyx": "yuv444p",
    "vuya": "yuva444p",
    "ayuv64le": "yuva444p16le",
    "monow": "gray",
    "monob": "gray",
    "ya8": "gbrap",
    "ya16le": "gbrap16le",
    "pal8": "gbrap",
    "x2rgb10le": "gbrp10le",
    "x2bgr10le": "gbrp10le",
    "rgb48le": "gbrp16le",
    "bgr48le": "gbrp16le",
    "rgba64le": "gbrap16le",
    "bgra64le": "gbrap16le",
    "gbrpf32le": "gbrp16le",
    "gbrapf32le": "gbrap16le",
    "grayf32le": "gray16le",
    **dict.fromkeys(("rgba", "bgra", "argb", "abgr"), "gbrap"),
    **dict.fromkeys(("rgb24", "bgr24", "rgb0", "bgr0", "0rgb", "0bgr", "rgb8", "bgr8"), "gbrp"),
    **dict.fromkeys(("rgb555le", "bgr555le", "rgb565le", "bgr565le", "rgb444le", "bgr444le"), "gbrp"),
}


@dataclass(frozen=True)
class Layout:
    kind: str
    """`yuv`, `gbr` (planes green, blue, red) or `gray`."""
    shift: tuple[int, int]
    """As powers of two, how much narrower and lower the colour planes are; an odd rest is a sample too."""
    depth: int
    """Bits of a sample."""
    alpha: bool
    """The last plane, as large as the first."""

    @property
    def bytes(self) -> int:
        """Of a sample."""
        return 1 if self.depth == 8 else 2

    def shapes(self, width: int, height: int) -> tuple[tuple[int, int], ...]:
        """Height and width of every plane."""
        colours = (-(-height >> self.shift[1]), -(-width >> self.shift[0]))
        base = [(height, width)] if self.kind == "gray" else [(height, width), colours, colours]
        return (*base, (height, width)) if self.alpha else tuple(base)

    def size(self, width: int, height: int) -> int:
        """Bytes of all planes."""
        return self.bytes * sum(rows * columns for rows, columns in self.shapes(width, height))


@cache
def layout(pixel_format: str) -> Layout:
    """Of a planar format. Raises ValueError for any other."""
    found = _NAME.fullmatch(pixel_format)
    if found is None:
        raise ValueError(pixel_format)
    family, sampling, planar, depth, little = found.groups()
    gray = family == "gray"
    if gray == bool(planar) or (family.startswith("yuv") != bool(sampling)) or bool(depth) != bool(little):
        raise ValueError(pixel_format)
    kind = "gray" if gray else family[:3]
    return Layout(kind, _SHIFTS[sampling or "444"], int(depth or 8), family in ("yuva", "gbra"))


def planar(pixel_format: str) -> str:
    """The same format where it is one of planes, little-endian; else the nearest such, which loses no bit.

    `yuvj420p` and its like are `yuv420p`: that their range is full stands in the colour facts. Raises ValueError for
    what no decoder that is let in gives.
    """
    name = pixel_format.replace("yuvj", "yuv")
    name = f"{name[:-2]}le" if name.endswith("be") else name
    name = _NEAREST.get(name, name)
    layout(name)
    return name
