"""What the stages ask of a model family: arrays in, arrays out, no I/O.

Pictures are uint8 [height, width, 3], BGR, sRGB, upright, C-contiguous, unless said otherwise.
Knows numpy and the error tree, no runtime and no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared.imaging.look import Canvas, Look

Image: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float32]
Parameter: TypeAlias = str | int | float | bool


class Adapter(Protocol):
    """Every model family is a class `Family(assets: ModelAssets, runtime: Runtime)` with this method."""

    def warm(self) -> None:
        """Run one sample through the loaded model, so that ready means warm."""
        ...


@dataclass(frozen=True)
class ModelAssets:
    """What an adapter is made from: its catalogue name, its verified local files and its table's numbers."""

    name: str
    files: Mapping[str, Path]
    parameters: Mapping[str, Parameter]
    uses: Mapping[str, Adapter] = field(default_factory=dict)
    """Other loaded models, by what they are to this one (`embedder`)."""


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
class SparseLandmarks:
    """The 68 points of one face in the order of iBUG 300-W."""

    points: Floats
    """[68, 2] in pixels of the picture."""
    score: float
    """0..1, how sure the network is of them."""


@dataclass(frozen=True)
class SwapOptions:
    """What a caller may choose of a swap; a family ignores what it has no use for (docs/options.md)."""

    eyes: str = "target"
    """`target` or `source`; embedded swapper."""
    shape: float = 0.5
    """0..1; embedded swapper."""
    boost: int = 0
    """Side in pixels at which a face is swapped, a multiple of the model's own; 0 is the model's own."""
    colour_match: bool = False
    """Give the swapped crop the mean and spread of the target crop's colours before it is pasted."""
    mask_blur: float = 0.3
    """Feather of the box mask, 0..1 of half the crop."""
    mask_padding: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Top, right, bottom, left: parts of the crop (0..1) that stay the target's."""


@dataclass(frozen=True)
class SourceFace:
    """One face of a source picture; `mesh` [468, 3] in the picture's pixels."""

    image: Image
    mesh: Floats
    points: Floats | None = None
    """[5, 2], when something finer than the mesh measured them: see `shared.vision.geometry.alignment`."""


@dataclass(frozen=True)
class TextLine:
    """One line of text as it was read."""

    text: str
    score: float
    """0..1, mean over its characters."""
    box: Floats
    """[4, 2] in pixels of the picture: clockwise from the line's own top left corner."""


class Detector(Adapter, Protocol):
    def detect(self, image: Image, *, size: int = 640, threshold: float = 0.5) -> list[Detection]:
        """Faces in no particular order. `size`: longest side in pixels at which the network looks."""
        ...


class Landmarker(Adapter, Protocol):
    def locate(self, image: Image, points: Sequence[Floats], *, passes: int = 2) -> list[Landmarks]:
        """One mesh per five-point set, in the same order."""
        ...

    def follow(self, look: Look, meshes: Sequence[Floats]) -> list[Landmarks]:
        """Faces that have moved a little since their meshes [468, 3] were found: one pass each, in the same order."""
        ...


class Refiner(Adapter, Protocol):
    def refine(self, image: Image, faces: Sequence[FoundFace]) -> list[SparseLandmarks]:
        """One set per face, in the same order."""
        ...


class Moderator(Adapter, Protocol):
    def score(self, image: Image) -> float:
        """Probability 0..1 that the picture is not safe for work."""
        ...


class Reader(Adapter, Protocol):
    def read(self, image: Image) -> list[TextLine]:
        """The lines of text in the picture, from top to bottom, those of one height from left to right."""
        ...


class Identity(Protocol):
    """What a swapper keeps of a source face; computed once per source, but for its warnings opaque to the stages."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of this source will be seen on every target, as stable words."""
        ...


class Memory:
    """What a swapper keeps of one track from frame to frame, so that its light does not flicker.

    Made by whoever knows the tracks, one for each and a new one after a cut; what it holds is the swapper's own. Frames
    come in the order of time, in one thread at a time.
    """

    def __init__(self) -> None:
        self.state: object | None = None


@dataclass(frozen=True)
class Target:
    """One face to be replaced; `mesh` [468, 3] in the frame's pixels."""

    mesh: Floats
    identity: Identity
    points: Floats | None = None
    """[5, 2], as for a source."""
    strength: float = 1.0
    """0..1: how much of the new face shows. Fades a face in and out where its track begins and ends."""
    memory: Memory | None = None
    """Of the track that this face belongs to; None for a picture."""


class Masker(Adapter, Protocol):
    """Says which pixels of an aligned face crop are the face's own: occluders, face parsers."""

    sees_swapped: bool
    """Whether it is shown the swapped crop (a parser of the new face) or the target's own (what covers the face)."""

    def mask(self, crops: Image) -> Floats:
        """uint8 [n, h, w, 3] -> float32 [n, h, w], 1 where the swapped face may show."""
        ...


class Occluder(Masker, Protocol):
    """A masker that tells what lies over a face: hands, hair, glasses."""


class Parser(Masker, Protocol):
    """A masker that tells skin and features from the rest of a head."""


class Embedder(Adapter, Protocol):
    def embed(self, image: Image, points: Sequence[Floats]) -> Floats:
        """float32 [n, 512], raw as the network gives it, one row per refined five-point set [5, 2]."""
        ...


class Swapper(Adapter, Protocol):
    takes_maskers: bool
    """Whether `swap` looks at its maskers; none are loaded for one that does not."""

    def examine(self, source: SourceFace) -> tuple[str, ...]:
        """The warnings that the source's identity will carry, at a part of the cost of `prepare`."""
        ...

    def prepare(self, sources: Sequence[SourceFace]) -> Identity:
        """One identity from one or more pictures of one person; once per job, whatever the number of targets."""
        ...

    def swap(
        self, frame: Image, targets: Sequence[Target], options: SwapOptions, maskers: Sequence[Masker] = ()
    ) -> None:
        """Replace the faces in place, in one batch where the family can.

        No pixel outside a face's own region changes. Masks of the maskers and the family's own are joined by minimum.
        """
        ...

    def swap_many(
        self,
        frames: Sequence[Canvas],
        targets: Sequence[Sequence[Target]],
        options: SwapOptions,
        maskers: Sequence[Masker] = (),
    ) -> None:
        """`swap` for several canvases, frames of a video in the order of time; one batch where the family can.

        `targets`: those of each canvas, in its pixels.
        """
        ...


class Enhancer(Adapter, Protocol):
    def enhance(self, frame: Canvas, meshes: Sequence[Floats], blend: float) -> None:
        """Restore the faces in place; `blend` 0..1 is the share of the restored face."""
        ...


class Upscaler(Adapter, Protocol):
    factor: int
    """How many times larger the result is."""

    def upscale(self, frame: Image) -> Image:
        """A new picture, `factor` times as high and wide."""
        ...
