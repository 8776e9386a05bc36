"""Log luma and bounded chroma: the colour space in which light and skin are told apart.

Lighting multiplies, so luma is a logarithm; chroma is relative to luma, which stays bounded where a channel is near
zero (ratios of log RGB gave blue and grey blotches, engine.md section 3). Knows numpy only.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from shared.vision.protocols import Floats

_BLUE, _GREEN, _RED = np.float32(0.114), np.float32(0.587), np.float32(0.299)
"""Luma weights of Rec. ITU-R BT.601."""
_FLOOR = np.float32(12.0)
"""Grey levels added before the logarithm, so that noise in the dark stays small."""


def split(bgr: Floats) -> Floats:
    """[h, w, 3] BGR 0..255 to log luma, blue / luma - 1, red / luma - 1."""
    b, g, r = bgr[..., 0], bgr[..., 1], bgr[..., 2]
    luma = _BLUE * b + _GREEN * g + _RED * r + _FLOOR
    return np.stack([np.log(luma), (b + _FLOOR) / luma - 1, (r + _FLOOR) / luma - 1], -1)


def join(log_luma: Floats, blue: Floats, red: Floats) -> Floats:
    """The inverse of split: [h, w, 3] BGR, not clipped."""
    luma = np.exp(log_luma)
    b, r = luma * (1 + blue), luma * (1 + red)
    g = (luma - _BLUE * b - _RED * r) / _GREEN
    return cast(Floats, np.stack([b, g, r], -1) - _FLOOR)
