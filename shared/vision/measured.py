"""The landmarks of a job between detect and the stages that use them: one file, arrays in, arrays out.

The names are those of `Faces.landmarks` in shared/events/payloads.py. Knows numpy and the error tree.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared.errors import InvalidCloudEventError
from shared.vision.geometry import five_of_68
from shared.vision.protocols import Floats, FoundFace, Image, Refiner

SURE = 0.5
"""Score from which a refiner's points are used instead of the mesh's."""


@dataclass(frozen=True)
class Measured:
    """The faces of one or more pictures."""

    meshes: Floats
    """[n, 468, 3]"""
    points: Floats
    """[n, 5, 2], NaN where no finer model was sure."""

    def __len__(self) -> int:
        return len(self.meshes)

    def five(self, index: int) -> Floats | None:
        """What the finer model says of one face, if anything."""
        points = self.points[index]
        return points if np.isfinite(points).all() else None


def measure(image: Image, faces: Sequence[FoundFace], refiner: Refiner | None) -> Measured:
    """The faces' meshes, and what a finer model says of those it is sure about."""
    points = np.full((len(faces), 5, 2), np.nan, np.float32)
    for index, found in enumerate(refiner.refine(image, faces) if refiner is not None else []):
        if found.score >= SURE:
            points[index] = five_of_68(found.points)
    return Measured(np.stack([face.mesh for face in faces]), points)


def none() -> Measured:
    """Of no face."""
    return Measured(np.empty((0, 468, 3), np.float32), np.empty((0, 5, 2), np.float32))


def joined(parts: Sequence[Measured]) -> Measured:
    return Measured(*(np.concatenate(values) for values in zip(*((m.meshes, m.points) for m in parts), strict=True)))


def write(sources: Measured, best: int, targets: Measured) -> bytes:
    """The file; the same arrays give the same bytes. `best`: index of the source that stands for all."""
    data = io.BytesIO()
    np.savez(
        data,
        source=sources.meshes[best],
        sources=sources.meshes,
        source_points=sources.points,
        target=targets.meshes,
        target_points=targets.points,
    )
    return data.getvalue()


def read(data: bytes) -> tuple[Measured, Measured]:
    """The sources and the targets; without the newer names the one source, and no finer points.

    Raises InvalidCloudEventError for anything that `write` cannot have made.
    """
    try:
        with np.load(io.BytesIO(data)) as file:
            arrays = dict(file)
        sources = arrays["sources"] if "sources" in arrays else arrays["source"][None]
        return _measured(sources, arrays.get("source_points")), _measured(arrays["target"], arrays.get("target_points"))
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InvalidCloudEventError("data: the landmarks cannot be read.", context={"attribute": "data"}) from error


def _measured(meshes: Floats, points: Floats | None) -> Measured:
    return Measured(meshes, np.full((len(meshes), 5, 2), np.nan, np.float32) if points is None else points)
