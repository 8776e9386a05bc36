"""MediaPipe's 468-point face mesh (converted to ONNX, Apache-2.0).

Model files: `model`. Input [n, 3, 192, 192] RGB / 255; outputs 468 x (x, y, z) in crop pixels and a face logit.
Knows the runtime and geometry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

from shared.imaging.geometry import invert
from shared.imaging.look import Look
from shared.vision.geometry import Region, region_from_mesh, region_from_points
from shared.vision.protocols import Floats, Image, Landmarks, ModelAssets
from shared.vision.runtime import Runtime

_SIZE = 192
_OUTPUTS = ("conv2d_20", "conv2d_30")


class FaceMesh:
    """Landmarker. One thread: two make it slower on shared cores, and batches gain nothing (engine.md section 1)."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        self._session = runtime.session(assets.files["model"], threads=1)

    def warm(self) -> None:
        blank = np.zeros((_SIZE, _SIZE, 3), np.uint8)
        self._measure(blank, Region(_SIZE / 2, _SIZE / 2, _SIZE, 0.0))

    def locate(self, image: Image, points: Sequence[Floats], *, passes: int = 2) -> list[Landmarks]:
        """One mesh per five-point set [5, 2].

        The first crop comes from the points, each further pass crops anew around the mesh so far; the second still
        moves points by 1-4 % of the eye distance, the third by 1-2 % (engine.md section 2).
        """
        return [self._refine(image, region_from_points(five), passes) for five in points]

    def follow(self, look: Look, meshes: Sequence[Floats]) -> list[Landmarks]:
        """The crop that `locate` would make for its next pass: so a face at rest keeps its mesh."""
        found: list[Landmarks] = []
        for region in map(region_from_mesh, meshes):
            crop = look.glimpse(invert(region.matrix(_SIZE)), (_SIZE, _SIZE))
            found.append(self._read(crop, region))
        return found

    def _refine(self, image: Image, region: Region, passes: int) -> Landmarks:
        found = self._measure(image, region)
        for _ in range(passes - 1):
            found = self._measure(image, region_from_mesh(found.mesh))
        return found

    def _measure(self, image: Image, region: Region) -> Landmarks:
        return self._read(crop_region(image, region, _SIZE), region)

    def _read(self, crop: Image, region: Region) -> Landmarks:
        """The mesh in a crop of that region."""
        blob = np.ascontiguousarray(crop[None, :, :, ::-1].transpose(0, 3, 1, 2), np.float32) / np.float32(255)
        points, logit = self._session.run({"input": blob}, _OUTPUTS)
        local = points.reshape(468, 3)
        back = invert(region.matrix(_SIZE))
        mesh = np.empty((468, 3), np.float32)
        mesh[:, :2] = local[:, :2] @ back[:, :2].T + back[:, 2]
        mesh[:, 2] = local[:, 2] * (region.side / _SIZE)
        return Landmarks(mesh, _sigmoid(float(logit[0, 0])))


def crop_region(image: Image, region: Region, size: int) -> Image:
    """The turned square as size x size pixels; outside the picture its edge repeats.

    A region more than twice too large is first averaged down by a whole factor: sampling it directly would alias,
    and the part of the picture around it is all that gets touched.
    """
    matrix = region.matrix(size)
    factor = int(region.side / size)
    if factor >= 2:
        x0, y0, part = _surroundings(image, region, factor)
        if part.size:
            image = cv2.resize(  # type: ignore[assignment]
                part, (part.shape[1] // factor, part.shape[0] // factor), interpolation=cv2.INTER_AREA
            )
            # pixel centres: x_full = (x_small + 0.5) * factor - 0.5 + x0
            shift = (factor - 1) / 2
            matrix[:, 2] += matrix[:, :2] @ np.array([x0 + shift, y0 + shift])
            matrix[:, :2] *= factor
    return cv2.warpAffine(  # type: ignore[return-value]
        image, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )


def _surroundings(image: Image, region: Region, factor: int) -> tuple[int, int, Image]:
    """The upright box around the region, inside the picture, its sides whole multiples of factor (or all there is)."""
    height, width = image.shape[:2]
    reach = region.side / 2 * (abs(math.cos(region.angle)) + abs(math.sin(region.angle))) + 2 * factor
    x0, x1 = _span(region.x - reach, region.x + reach, width, factor)
    y0, y1 = _span(region.y - reach, region.y + reach, height, factor)
    return x0, y0, image[y0:y1, x0:x1]


def _span(low: float, high: float, limit: int, factor: int) -> tuple[int, int]:
    start = min(max(0, math.floor(low)), limit)
    stop = min(limit, max(start, math.ceil(high)))
    return start, start + (stop - start) // factor * factor


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
