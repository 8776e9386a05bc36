"""Where the five points of a face belong in the square crops that the networks were trained on.

Numbers only. Fractions of the crop's side; viewer's left eye, right eye, nose tip, left and right mouth corner.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from shared.errors import ModelInvalidError

_POINTS = {
    "arcface_112_v1": (
        (0.35473214, 0.45658929),
        (0.64526786, 0.45658929),
        (0.50000000, 0.61154464),
        (0.37913393, 0.77687500),
        (0.62086607, 0.77687500),
    ),
    "arcface_112_v2": (
        (0.34191607, 0.46157411),
        (0.65653393, 0.45983393),
        (0.50022500, 0.64050536),
        (0.37097589, 0.82469196),
        (0.63151696, 0.82325089),
    ),
    "arcface_128": (
        (0.3616765625, 0.40387734375),
        (0.6369671875, 0.4023546875),
        (0.500196875, 0.5604421875),
        (0.38710390625, 0.72160546875),
        (0.61507734375, 0.72034453125),
    ),
    "dfl_whole_face": (
        (0.35342266, 0.39285716),
        (0.62797622, 0.39285716),
        (0.48660713, 0.54017860),
        (0.38839287, 0.68750011),
        (0.59821427, 0.68750011),
    ),
    "ffhq_512": (
        (0.37691676, 0.46864664),
        (0.62285697, 0.46912813),
        (0.50123859, 0.61331904),
        (0.39308822, 0.72541100),
        (0.61150205, 0.72490465),
    ),
    "mtcnn_512": (
        (0.36562865, 0.46733799),
        (0.63305391, 0.46585885),
        (0.50019127, 0.61942959),
        (0.39032951, 0.77598822),
        (0.61178945, 0.77476328),
    ),
    "styleganex_384": (
        (0.42353745, 0.52289879),
        (0.57725008, 0.52319972),
        (0.50123859, 0.61331904),
        (0.43364461, 0.68337652),
        (0.57015325, 0.68306005),
    ),
}


def _frozen(points: tuple[tuple[float, float], ...]) -> NDArray[np.float64]:
    array = np.array(points, np.float64)
    array.setflags(write=False)
    return array


TEMPLATES: Mapping[str, NDArray[np.float64]] = MappingProxyType({name: _frozen(p) for name, p in _POINTS.items()})
"""[5, 2] each. Values as listed for FaceFusion 3.8.1; `arcface_128` is insightface's 112 px template shifted 8 px to
the right on a canvas of 128, in all its digits. Times the crop's side they are pixel coordinates with whole numbers at
pixel centres."""


def template(name: str) -> NDArray[np.float64]:
    """Raises ModelInvalidError for a name that no template has."""
    try:
        return TEMPLATES[name]
    except KeyError:
        known = ", ".join(TEMPLATES)
        raise ModelInvalidError(f"There is no template {name!r}; known are {known}.") from None
