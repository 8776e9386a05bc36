"""Which side of a source stands for both: the texture is symmetric, so the mirror image is a flip.

Works at any texture size. Knows analysis and texture, no picture.
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np

from shared.vision.protocols import Floats
from shared.vision.swapper.analysis import SIZE, Analysis
from shared.vision.swapper.filters import blur, disc, enlarge, smoothstep, smoothstep_of
from shared.vision.swapper.uv import UVGrid

HARD_LIGHT = 0.2
"""Contrast of the skin above which shadows read as dirt or beard (engine.md section 3)."""
_SOFT_LIGHT = 0.15
"""Contrast from which the lit side begins to stand in. Measured: 12 faces in soft light up to 0.14."""
_SHADED, _IN_SHADOW = 0.1, 0.35
"""Log luma by which a texel is darker than its mirror image: from where it gives way, and from where wholly."""


def own_side(seen: Floats, analysis: Analysis, grid: UVGrid) -> Floats:
    """[size, size]: 1 where the texel itself is used, 0 where its mirror image stands in.

    The mirror image takes over early when the pose is asymmetric, where hair lies on one side only, and where hard
    light leaves one side in shadow.
    """
    size, mirrored = grid.size, seen[:, ::-1]
    inner = grid.rim > 0.1
    lean = float((seen * inner * np.linspace(-1, 1, size, dtype=np.float32)).sum() / inner.sum())
    turned = smoothstep_of(abs(lean), 0.04, 0.12)
    better = smoothstep(seen - mirrored, -0.40 + 0.26 * turned, -0.12 + 0.10 * turned)
    own = np.where(seen >= mirrored, np.float32(1), better * smoothstep(seen, 0.10, 0.40))
    own = blur(own, 0.012 * size)
    clear = enlarge(analysis.occlusion.clear_wide, size, size)
    other = clear[:, ::-1]
    clean = smoothstep(enlarge(analysis.occlusion.suspicion, size, size)[:, ::-1], 0.45, 0.25)
    swap = (clear < 0.5) & (other > clear + 0.2) & (mirrored > 0.2)
    own = blur(np.where(swap, np.minimum(own, 1 - clean * (1 - clear)), own), 0.006 * size)
    return _lit_side(own, seen, analysis, grid)


def either_side(seen: Floats) -> Floats:
    """1 where the camera saw the texel or its mirror image."""
    size = len(seen)
    best = cv2.morphologyEx(np.maximum(seen, seen[:, ::-1]), cv2.MORPH_CLOSE, disc(max(3, int(0.09 * size))))
    return smoothstep(cast(Floats, best), 0.2, 0.5)


def _lit_side(own: Floats, seen: Floats, analysis: Analysis, grid: UVGrid) -> Floats:
    """In hard light a shaded texel gives way to its mirror image, where that is lit and seen."""
    amount = smoothstep_of(analysis.skin.contrast, _SOFT_LIGHT, HARD_LIGHT)
    if amount == 0:
        return own
    size = grid.size
    luma = enlarge(blur(analysis.luma, 0.03 * SIZE), size, size)  # so that brows and lashes do not count
    darker = smoothstep(luma[:, ::-1] - luma, _SHADED, _IN_SHADOW) * smoothstep(seen[:, ::-1], 0.1, 0.3)
    darker = darker * (1 - grid.keep_eyes)  # a mirrored gaze squints
    return cast(Floats, np.minimum(own, 1 - np.float32(amount) * blur(darker, 0.01 * size)))
