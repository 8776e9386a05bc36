"""A decoded frame as its codec left it: planes of numbers, a time, nothing converted.

Knows numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True)
class Frame:
    """Planes are writable views, not turned: rotation is for who looks at them."""

    planes: tuple[Samples, ...]
    """[height, width] each, in the order of the pixel format (Y, U, V; or G, B, R; then alpha); uint16 holds more than
    8 bits in its low ones."""
    pixel_format: str
    """FFmpeg's name of a planar format."""
    pts: int
    """Ticks of the video's time base."""
    duration: int
    """Ticks; 0 where the stream does not say."""
    key: bool
    cut: bool = False
    """Whether a new scene begins here, told from the pictures."""
    damaged: bool = False
    """Decoded with errors."""
