"""The quality that a caller asks for, 1..100, as each encoder counts it. Knows numpy.

Anchors in between which quality is linear. 92, the default, is meant to be told from the source by measurement only;
docs/video.md has what was measured.
"""

from __future__ import annotations

import numpy as np

_QUALITY = (1, 50, 75, 92, 100)
_RATES = {
    "libx264": (45, 30, 23, 17, 8),
    "libx265": (47, 32, 25, 19, 10),
    "libsvtav1": (63, 47, 35, 24, 8),
    "libvpx-vp9": (63, 44, 33, 22, 6),
    "h264_nvenc": (46, 32, 25, 19, 10),
    "hevc_nvenc": (48, 34, 27, 21, 12),
    "av1_nvenc": (51, 40, 31, 23, 12),
}
"""Constant rate factor, or NVENC's constant quality: less is better."""


def rate_factor(encoder: str, quality: int) -> int:
    """`encoder` by FFmpeg's name, quality 1..100."""
    return round(float(np.interp(quality, _QUALITY, _RATES[encoder])))
