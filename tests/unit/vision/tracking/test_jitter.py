"""With the real models: a pasted face on a still that moves hardly trembles, where frame by frame it does.

Measured (48 frames, 61 px between the eyes): pasted 0.019 px tracked, 0.138 untracked; meshes 0.043 and 0.309.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shared.vision.detector.centerface import CenterFace
from shared.vision.landmarker.face_mesh import FaceMesh
from shared.vision.protocols import SourceFace
from shared.vision.swapper.mesh import MeshSwapper

from ..conftest import Portrait
from . import jitter


@pytest.mark.parametrize("grain", [0.0, pytest.param(3.0, marks=pytest.mark.slow)])
def test_a_tracked_face_trembles_less_than_half_as_much(
    grain: float,
    portrait: Callable[[str], Portrait],
    detector: CenterFace,
    landmarker: FaceMesh,
    swapper: MeshSwapper,
) -> None:
    astronaut = portrait("astronaut")
    source = SourceFace(astronaut.image, astronaut.faces[0].mesh)
    still = np.ascontiguousarray(astronaut.image[:, ::-1])
    tracked, untracked = jitter.both(still, source, (detector, landmarker, swapper), frames=24, grain=grain)
    assert tracked.pasted < untracked.pasted / 2
    assert tracked.mesh < untracked.mesh / 2
    assert tracked.flicker < untracked.flicker
    assert tracked.pasted < 0.06
