"""What all learned swappers share: aligned crops through one network, in one batch, and back into the frame.

A family adds how a source becomes the row of numbers that its network takes; everything else is its model's table:
`size`, `template`, `mean`, `std` (or `mean_r` ... `std_b`), `unnorm`, and `exact` for crops and pastes to the pixel as
insightface makes them, for comparisons (large faces alias, and there are no masks but its own). Knows the runtime,
crops, masks and pastes, no family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from shared.errors import InvalidOptionError, ModelInvalidError
from shared.imaging.boost import join, split
from shared.imaging.canvas import Still
from shared.imaging.colour_match import match_colour
from shared.imaging.geometry import Doubles, invert, outline, region
from shared.imaging.look import Canvas
from shared.imaging.masks import box_mask
from shared.imaging.masks import join as least
from shared.imaging.paste_exact import paste_exact
from shared.vision.canonical import canonical
from shared.vision.crops import Crop, align
from shared.vision.geometry import alignment
from shared.vision.parameters import Parameters
from shared.vision.pixels import Pixels
from shared.vision.protocols import (
    Floats,
    Image,
    Masker,
    ModelAssets,
    SourceFace,
    SwapOptions,
    Target,
)
from shared.vision.runtime import Runtime

_SMALLEST = 8
"""Crops with a shorter side in the frame are left alone, as the embedded swapper leaves them."""
_LARGEST_BOOST = 1024


@dataclass(frozen=True)
class SourceRow:
    """A source as the network takes it: what `prepare` makes once per job."""

    values: Floats
    """[512] or [3, size, size]."""
    warnings: tuple[str, ...] = ()


class Swapped(NamedTuple):
    """The faces of a frame between the network and the paste."""

    crops: list[Crop]
    """The target's own pixels and their place."""
    pictures: Image
    """uint8 [n, side, side, 3], the new faces."""


class _Cut(NamedTuple):
    crop: Crop
    target: Target


class LearnedSwapper(ABC):
    """Swapper. Holds nothing of a job: any number of threads may use one."""

    takes_maskers = True

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        """Raises ConfigError for a table that lacks a number."""
        table = Parameters(assets)
        self.name = assets.name
        self.size = table.whole("size")
        self._template = table.text("template")
        self._exact = table.flag("exact")
        self._pixels = Pixels.read(table)
        session = runtime.session(assets.files["model"])
        self._model = runtime.batches(session)
        self._outputs = list(session.outputs)[:1]  # hyperswap's second output, a mask, is not read

    def examine(self, source: SourceFace) -> tuple[str, ...]:  # noqa: ARG002 - a face is drawn anew
        return ()

    @abstractmethod
    def prepare(self, sources: Sequence[SourceFace]) -> SourceRow:
        """One identity from one or more pictures of one person; once per job, whatever the number of targets."""

    def warm(self) -> None:
        """A grey picture's identity onto its own canonical face, through every network that a job needs."""
        frame = np.full((256, 256, 3), 128, np.uint8)
        mesh = canonical().mean * np.float32(80) + np.array([128, 128, 0], np.float32)
        self.swap(frame, [Target(mesh, self.prepare([SourceFace(frame, mesh)]))], SwapOptions())

    def swap(
        self, frame: Image, targets: Sequence[Target], options: SwapOptions, maskers: Sequence[Masker] = ()
    ) -> None:
        """Identities as made by `prepare`. All faces are cut out before the first is pasted.

        A face outside the frame, or a sliver of one, changes nothing. Raises InvalidOptionError for a boost that is no
        multiple of the model's size, GpuMemoryError.
        """
        self.swap_many([Still(frame)], [targets], options, maskers)

    def swap_many(
        self,
        frames: Sequence[Canvas],
        targets: Sequence[Sequence[Target]],
        options: SwapOptions,
        maskers: Sequence[Masker] = (),
    ) -> None:
        """`swap` for several canvases, the faces of all of them in one batch."""
        cut = [self._cut(frame, faces, options) for frame, faces in zip(frames, targets, strict=True)]
        faces = [face for found in cut for face in found]
        if not faces:
            return
        swapped = self._swapped(faces, options)
        masks = None if self._exact else _masks(swapped, options, maskers)
        owners = [frame for frame, found in zip(frames, cut, strict=True) for _ in found]
        for index, (frame, face) in enumerate(zip(owners, faces, strict=True)):
            crop, picture, strength = face.crop, swapped.pictures[index], face.target.strength
            if masks is None:
                _lay_exact(frame, picture, crop.matrix, strength)
                continue
            matched = match_colour(picture, crop.pixels, masks[index]) if options.colour_match else picture
            frame.lay(matched, masks[index] * np.float32(strength), crop.matrix)

    def swapped(self, frame: Image, targets: Sequence[Target], options: SwapOptions) -> Swapped:
        """The new faces before they are pasted, of those targets that lie in the frame."""
        return self._swapped(self._cut(Still(frame), targets, options), options)

    def _cut(self, frame: Canvas, targets: Sequence[Target], options: SwapOptions) -> list[_Cut]:
        """The faces that are to be seen and lie in the frame."""
        side = self.size * self._factor(options.boost)
        faces: list[_Cut] = []
        for target in targets:
            points = alignment(target)
            usable = np.isfinite(points).all() and np.ptp(points, axis=0).max() > 0
            if not usable or target.strength <= 0:
                continue
            crop = align(frame, points, self._template, side, native=self.size, exact=self._exact)
            if _shows(crop, frame.size):
                faces.append(_Cut(crop, target))
        return faces

    def _swapped(self, faces: Sequence[_Cut], options: SwapOptions) -> Swapped:
        factor = self._factor(options.boost)
        if not faces:
            return Swapped([], np.empty((0, self.size * factor, self.size * factor, 3), np.uint8))
        crops = [face.crop for face in faces]
        rows = np.stack([cast(SourceRow, face.target.identity).values for face in faces])
        return Swapped(crops, self._run(crops, rows, factor))

    def _run(self, crops: Sequence[Crop], rows: Floats, factor: int) -> Image:
        """All tiles of all faces in one batch: n crops of k s a side and rows [n, ...] -> [n, k s, k s, 3]."""
        tiles = _together([split(crop.pixels, factor) for crop in crops])
        feeds = {"target": self._pixels.planes(tiles), "source": np.repeat(rows, factor * factor, axis=0)}
        (planes,) = self._model.run(feeds, self._outputs)
        if not np.isfinite(np.vdot(planes, planes)):  # ten times as fast as looking at each
            raise ModelInvalidError(f"{self.name} gave values that are no numbers; half precision may overflow")
        if self._exact:
            planes = np.floor(planes * np.float32(255)) / np.float32(255)
        pictures = self._pixels.levels(planes).reshape(len(crops), factor * factor, self.size, self.size, 3)
        return _together([join(face, factor)[None] for face in pictures])

    def _factor(self, boost: int) -> int:
        """How many of the model's own crops go side by side into a boosted one."""
        side = boost or self.size
        if side % self.size or not self.size <= side <= max(self.size, _LARGEST_BOOST):
            allowed = f"a multiple of {self.size} up to {_LARGEST_BOOST}"
            raise InvalidOptionError(f"boost: {boost} is not {allowed} ({self.name}).", context={"field": "boost"})
        return side // self.size


def _together(parts: Sequence[Image]) -> Image:
    """Along the first axis; a single one as it is, for a boosted face is megabytes."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _lay_exact(frame: Canvas, picture: Image, matrix: Doubles, share: float) -> None:
    """Positions count from the frame's corner there, so the whole of it is looked at."""
    box = (0, 0, *frame.size)
    before = frame.part(box)
    paste_exact(after := before.copy(), picture, matrix, share)
    frame.change(box, before, after)


def _shows(crop: Crop, size: tuple[int, int]) -> bool:
    """Whether enough of the crop lies in the frame to be worth a run."""
    side = len(crop.pixels)
    x0, y0, x1, y1 = region(outline(side, side, invert(crop.matrix)), size[::-1], 0)
    return min(x1 - x0, y1 - y0) >= _SMALLEST


def _masks(swapped: Swapped, options: SwapOptions, maskers: Sequence[Masker]) -> Floats:
    """float32 [n, side, side]: the least of the box and what every masker leaves."""
    pictures = swapped.pictures
    box = box_mask(pictures.shape[1], options.mask_blur, options.mask_padding)
    masks = [np.broadcast_to(box, pictures.shape[:3])]
    if maskers:
        targets = np.stack([crop.pixels for crop in swapped.crops])
        masks += [masker.mask(pictures if masker.sees_swapped else targets) for masker in maskers]
    return least(masks)
