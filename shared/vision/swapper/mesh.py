"""The embedded swapper: the source's features painted over the target's in the texture space of the mesh.

Needs no model file. Analysis, texture and map have a fixed size and only the face's own region of the frame is
touched, so the cost depends on the face, never on the frame (engine.md section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import cv2
import numpy as np

from shared.imaging.look import Canvas
from shared.vision.canonical import canonical
from shared.vision.geometry import pose_of
from shared.vision.protocols import Floats, Image, Masker, ModelAssets, SourceFace, SwapOptions, Target
from shared.vision.runtime import Runtime
from shared.vision.swapper.analysis import analyse
from shared.vision.swapper.filters import blur, enlarge, reduce, sample
from shared.vision.swapper.fitness import examine
from shared.vision.swapper.patches import patches
from shared.vision.swapper.raster import draw
from shared.vision.swapper.region import Box, crop_face
from shared.vision.swapper.relight import Paint, Surface, relight
from shared.vision.swapper.reshape import reshape
from shared.vision.swapper.source import TEXTURE_SIZES, MeshIdentity, prepare_source
from shared.vision.swapper.steady import steady
from shared.vision.swapper.uv import uv_grid
from shared.vision.swapper.visibility import facing

_WORK = 512
"""Longest side of the region that is worked on; of a larger face the enlarged difference is added to the frame."""
_GRAIN = 150
_GRAIN_LIMIT = 12
"""Grain is finer than 1/150 of the face and weaker than this many grey levels; more would be the target's wrinkles."""
_ROOM = 8
"""Pixels around a mesh: its box is 2 wider."""
_SMALLEST = 8
"""Regions with a shorter side are left alone."""


class MeshSwapper:
    """Swapper. Holds no state: any number of threads may use one."""

    takes_maskers = False

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        self.name = assets.name
        self._threads = runtime.threads

    def warm(self) -> None:
        """Build the tables of every texture size and draw one face on a grey picture."""
        for size in TEXTURE_SIZES:
            uv_grid(size)
        frame = np.full((256, 256, 3), 128, np.uint8)
        mesh = canonical().mean * np.float32(80) + np.array([128, 128, 0], np.float32)
        self.swap(frame, [Target(mesh, self.prepare([SourceFace(frame, mesh)]))], SwapOptions())

    def prepare(self, sources: Sequence[SourceFace]) -> MeshIdentity:
        """Of several pictures the most frontal, which shows most of the face: textures do not average well."""
        best = min(sources, key=lambda source: abs(pose_of(source.mesh).yaw))
        return prepare_source(best.image, best.mesh)

    def examine(self, source: SourceFace) -> tuple[str, ...]:
        """About 10 CPU ms."""
        return examine(source.image, source.mesh).warnings

    def swap(
        self,
        frame: Image,
        targets: Sequence[Target],
        options: SwapOptions,
        maskers: Sequence[Masker] = (),  # noqa: ARG002 - it finds occluders itself
    ) -> None:
        """Identities as made by `prepare`. A face outside the frame, or a sliver of one, changes nothing.

        Of a face with a memory and no strength only the light is remembered.
        """
        for target in targets:
            _swap_one(frame, target, options)

    def swap_many(
        self,
        frames: Sequence[Canvas],
        targets: Sequence[Sequence[Target]],
        options: SwapOptions,
        maskers: Sequence[Masker] = (),
    ) -> None:
        for frame, faces in zip(frames, targets, strict=True):
            for patch in patches(faces, frame.size, _reach):
                before = frame.part(patch.box)
                self.swap(after := before.copy(), patch.local, options, maskers)
                frame.change(patch.box, before, after)


def _reach(target: Target) -> Floats:
    low, high = target.mesh[:, :2].min(0), target.mesh[:, :2].max(0)
    return np.concatenate([low - _ROOM, high + _ROOM]).astype(np.float32)


def _swap_one(frame: Image, target: Target, options: SwapOptions) -> None:
    box = Box.around(target.mesh, frame.shape)
    if min(box.width, box.height) < _SMALLEST or (target.strength <= 0 and target.memory is None):
        return
    region, local = crop_face(frame, target.mesh, box)
    ratio = min(1.0, _WORK / max(box.width, box.height))
    work, mesh = (region, local) if ratio == 1.0 else (reduce(region, ratio), local * np.float32(ratio))
    surface, identity = _look(work, mesh, target)
    if target.strength <= 0:
        return
    painted = _paint(work, surface, identity, _as_strong(options, target.strength))
    if ratio == 1.0:
        region[:] = painted
    else:
        _add_difference(region, painted, work)


class _Wish(NamedTuple):
    options: SwapOptions
    strength: float


def _as_strong(options: SwapOptions, strength: float) -> _Wish:
    """A face that fades also takes its own shape again."""
    return _Wish(options if strength == 1 else replace(options, shape=options.shape * strength), strength)


def _look(work: Image, mesh: Floats, target: Target) -> tuple[Surface, MeshIdentity]:
    """What the target is like, in a video as its track's memory has it, and what is painted onto it."""
    front = facing(mesh)
    analysis, identity = analyse(work, mesh, front), cast(MeshIdentity, target.identity)
    if target.memory is not None:
        analysis, identity = steady(target.memory, analysis, identity, max(work.shape[:2]))
    return Surface(analysis, mesh, front), identity


def _paint(work: Image, surface: Surface, identity: MeshIdentity, wish: _Wish) -> Image:
    """The region with the face replaced, as a new picture."""
    height, width = work.shape[:2]
    mesh, options = surface.mesh, wish.options
    paint = relight(identity, surface, options)
    moved = reshape(mesh, identity.mesh, options.shape) if options.shape else mesh
    uv, shift = draw(moved, width, height, mesh if options.shape else None)
    under = work if shift is None else sample(work, shift.x, shift.y, cv2.INTER_CUBIC)
    x = uv.u * np.float32(identity.size) - np.float32(0.5)
    y = uv.v * np.float32(identity.size) - np.float32(0.5)
    colour = _with_grain(sample(paint.colour, x, y), under, sample(paint.plain, x, y), max(width, height))
    opacity = blur(_opacity_at(paint, x, y) * uv.covered, max(0.6, width / 300)) * np.float32(wish.strength)
    return cast(Image, cv2.blendLinear(colour, under, opacity, 1 - opacity))


def _opacity_at(paint: Paint, x: Floats, y: Floats) -> Floats:
    """0 outside the texture."""
    opacity = cv2.remap(paint.opacity, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=0)
    return cast(Floats, opacity)


def _with_grain(colour: Image, under: Image, plain: Floats, side: int) -> Image:
    """The painted skin with the finest band of the frame's own: its noise and pores do not stop at the rim."""
    difference = cv2.subtract(under, colour, dtype=cv2.CV_16S)
    sigma = min(max(side / _GRAIN, 0.7), 2.5)
    kernel = (2 * round(2 * sigma) + 1,) * 2
    fine = cv2.subtract(difference, cv2.GaussianBlur(difference, kernel, sigma))
    fine = np.clip(fine, -_GRAIN_LIMIT, _GRAIN_LIMIT)
    grained = cv2.add(colour, fine, dtype=cv2.CV_8U)
    return cast(Image, cv2.blendLinear(grained, colour, plain, 1 - plain))


def _add_difference(region: Image, painted: Image, work: Image) -> None:
    """Add what changed, enlarged: the frame's own pores outside the painted part survive."""
    change = cv2.subtract(painted, work, dtype=cv2.CV_16S)
    enlarged = enlarge(cast(Floats, change), region.shape[1], region.shape[0])
    region[:] = cv2.add(region, enlarged, dtype=cv2.CV_8U)
