"""What is measured of a target's light and skin, without the tremble from frame to frame of a video.

Averaged over the frames so far, the faster the more it changes: a lamp that is switched on lights the new face at once.
The state lies in the track's `Memory`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import cv2
import numpy as np

from shared.vision.protocols import Floats, Memory
from shared.vision.swapper.analysis import Analysis, SkinStatistics
from shared.vision.swapper.filters import smoothstep, smoothstep_of
from shared.vision.swapper.source import TEXTURE_SIZES, MeshIdentity

_SLOW = np.float32(0.15)
"""Part of a new measurement that counts while nothing changes: half of it is there after 4 frames."""
_HIDDEN = np.float32(0.4)
"""The same of what lies over the face: hands are fast."""
_STILL, _CHANGED = 0.02, 0.15
"""Log luma between which noise ends and change begins. Measured on a still with grain of 4 levels: 0.004-0.012."""
_FINER = 1.15
"""Texels per pixel of the face's longer side that are wanted, as for a source."""
_STAY = 1.25
"""A face must be so much larger before it gets a finer texture, so that the sizes do not alternate."""


@dataclass(frozen=True)
class _State:
    light: Floats
    clear: Floats
    skin: SkinStatistics
    source: MeshIdentity
    reduced: MeshIdentity
    """The source in a texture that suits the face: a finer one would shimmer, and cost more."""


def steady(memory: Memory, seen: Analysis, source: MeshIdentity, side: float) -> tuple[Analysis, MeshIdentity]:
    """What to paint by in this frame, and what; `side`: pixels of the face's longer side."""
    last = memory.state
    if not isinstance(last, _State) or last.source is not source:
        state = _State(seen.light, seen.occlusion.clear, seen.skin, source, _reduced(source, side, 0))
    else:
        state = _next(last, seen, side)
    memory.state = state
    occlusion = replace(seen.occlusion, clear=state.clear)
    return replace(seen, light=state.light, occlusion=occlusion, skin=state.skin), state.reduced


def _next(last: _State, seen: Analysis, side: float) -> _State:
    change = np.abs(seen.light[..., 0] - last.light[..., 0])
    share = _SLOW + (1 - _SLOW) * smoothstep(change, _STILL, _CHANGED)
    whole = float(_SLOW) + (1 - float(_SLOW)) * smoothstep_of(float(change.mean()), _STILL, _CHANGED)
    return _State(
        light=last.light + share[..., None] * (seen.light - last.light),
        clear=last.clear + _HIDDEN * (seen.occlusion.clear - last.clear),
        skin=_between(last.skin, seen.skin, whole),
        source=last.source,
        reduced=_reduced(last.source, side, last.reduced.size, last.reduced),
    )


def _between(old: SkinStatistics, new: SkinStatistics, share: float) -> SkinStatistics:
    def mix(a: float, b: float) -> float:
        return a + share * (b - a)

    return SkinStatistics(
        sharpness=tuple(mix(a, b) for a, b in zip(old.sharpness, new.sharpness, strict=True)),
        contrast=mix(old.contrast, new.contrast),
        chroma=mix(old.chroma, new.chroma),
        saturation=mix(old.saturation, new.saturation),
        warmth=(mix(old.warmth[0], new.warmth[0]), mix(old.warmth[1], new.warmth[1])),
    )


def _reduced(source: MeshIdentity, side: float, size: int, kept: MeshIdentity | None = None) -> MeshIdentity:
    """The source at the size for a face; `kept`, which has `size`, if that still does."""
    wanted = _size(side)
    if kept is not None and size in (wanted, _size(side / _STAY), _size(side * _STAY)):
        return kept
    return source if wanted >= source.size else _at(source, wanted)


def _size(side: float) -> int:
    return next((s for s in TEXTURE_SIZES if s >= side * _FINER), TEXTURE_SIZES[-1])


def _at(source: MeshIdentity, size: int) -> MeshIdentity:
    def less(x: Floats) -> Floats:
        return cast(Floats, cv2.resize(x, (size, size), interpolation=cv2.INTER_AREA))

    return replace(source, detail=less(source.detail), clear=less(source.clear), teeth=less(source.teeth))
