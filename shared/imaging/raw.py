"""Pixels on their way between stages: an uncompressed `.npy`, as fast as memory, the same pixels the same bytes.

The shape is that of `Media.pixels` in shared/events/payloads.py. Knows numpy only.
"""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.uint8]

CONTENT_TYPE = "application/octet-stream"


def pack(pixels: Plane, alpha: Plane | None) -> bytes:
    """`pixels` [h, w, 3] and, where there is one, `alpha` [h, w] as a fourth channel."""
    data = io.BytesIO()
    np.save(data, pixels if alpha is None else np.dstack([pixels, alpha]))
    return data.getvalue()


def unpack(data: bytes) -> tuple[Plane, Plane | None]:
    """What `pack` was given, each C-contiguous."""
    packed = np.load(io.BytesIO(data))
    alpha = np.ascontiguousarray(packed[..., 3]) if packed.shape[2] == 4 else None
    return np.ascontiguousarray(packed[..., :3]), alpha
