"""What the stages ask of a model family: arrays in, arrays out, no I/O.

Pictures are uint8 [height, width, 3], BGR, sRGB, upright, C-contiguous, unless said otherwise.
Knows numpy and the error tree, no runtime and no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Image: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]
Parameter: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class ModelAssets:
    """What an adapter is made from: its catalogue name, its verified local files and its table's numbers."""

    name: str
    files: Mapping[str, Path]
    parameters: Mapping[str, Parameter]


class Adapter(Protocol):
    """Every model family is a class `Family(assets: ModelAssets, runtime: Runtime)` with this method."""

    def warm(self) -> None:
        """Run one sample through the loaded model, so that ready means warm."""
        ...


@dataclass(frozen=True)
class Detection:
    """A face as a detector sees it, pixels of the picture."""

    box: Floats
    """[4]: x0, y0, x1, y1, clipped to the picture."""
    score: float
    points: Floats
    """[5, 2]: viewer's left eye, right eye, nose tip, left and right mouth corner. A start, never an alignment."""


@dataclass(frozen=True)
class Landmarks:
    """The dense mesh of one face."""

    mesh: Floats
    """[468, 3]: x, y in pixels of the picture, z in the same unit (smaller is nearer)."""
    score: float
    """Face flag of the mesh model, 0..1."""


@dataclass(frozen=True)
class FoundFace:
    """A face that passed the gate: detector box and score, refined mesh, pose."""

    box: Floats
    score: float
    mesh: Floats
    yaw: float
    """Degrees, positive when the face looks to the viewer's right."""
    misfit: float
    """RMS distance to the mean face after a similarity fit, in eye distances (engine.md: right fits 0.025-0.045)."""


@dataclass(frozen=True)
class SwapOptions:
    eyes: str = "target"
    shape: float = 0.5


class Detector(Adapter, Protocol):
    def detect(self, image: Image, *, size: int = 640, threshold: float = 0.5) -> list[Detection]:
        """Faces in no particular order. `size`: longest side in pixels at which the network looks."""
        ...


class Landmarker(Adapter, Protocol):
    def locate(self, image: Image, points: Sequence[Floats], *, passes: int = 2) -> list[Landmarks]:
        """One mesh per five-point set, in the same order."""
        ...


class Moderator(Adapter, Protocol):
    def score(self, image: Image) -> float:
        """Probability 0..1 that the picture is not safe for work."""
        ...


class Identity(Protocol):
    """What a swapper keeps of a source face; computed once per source, opaque to the stages."""


class Swapper(Adapter, Protocol):
    def prepare(self, image: Image, mesh: Floats) -> Identity: ...

    def swap(self, frame: Image, mesh: Floats, identity: Identity, options: SwapOptions) -> None:
        """Replace one face in place; no pixel outside the mesh's own region changes."""
        ...
