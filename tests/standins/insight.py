"""insightface's own swapper on a stand-in, and faces as it takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shared.vision.geometry import five_points
from shared.vision.protocols import Floats


class InsightFace(dict[str, Any]):
    """What INSwapper reads of a face: `kps` of the target's, `normed_embedding` of the source's."""

    __getattr__ = dict.__getitem__

    @classmethod
    def at(cls, mesh: Floats) -> InsightFace:
        return cls(kps=five_points(mesh).astype(np.float64))

    @classmethod
    def who(cls, raw: Floats) -> InsightFace:
        return cls(normed_embedding=raw / np.linalg.norm(raw))


def insightface_swapper(path: Path) -> Any:
    """insightface 2.1's INSwapper on the CPU, solving its alignment in double precision.

    In single, its crop lies up to 5e-5 pixels beside the exact one, enough for OpenCV to take another 1/32 of a pixel
    here and there, and for the network to make two levels of it.
    """
    from insightface.model_zoo import get_model
    from insightface.utils import face_align

    face_align.arcface_dst = np.round(face_align.arcface_dst.astype(np.float64), 4)
    return get_model(str(path), providers=["CPUExecutionProvider"])
