"""What a segment's faces become: all of it made when the first of them comes, and kept from frame to frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from functions.swap.choices import maskers_of, swap_options
from functions.swap.identities import Identities
from shared.context import Context
from shared.errors import InvalidOptionError
from shared.events.payloads import Tracks
from shared.imaging.look import Canvas
from shared.rejections import UnusableOptionError
from shared.vision import measured
from shared.vision.protocols import Enhancer, Identity, Masker, Memory, SwapOptions, Swapper, Target
from shared.vision.tracking.tracks import Place


@dataclass
class Faces:
    """Replaces faces in frames, and remembers each track's light."""

    event: Tracks
    ctx: Context
    warnings: tuple[str, ...] = ()
    _memories: dict[int, Memory] = field(default_factory=dict)

    def replace(self, frames: Sequence[Canvas], places: Sequence[Sequence[Place]]) -> None:
        """Those of each frame, in place; frames in the order of time. Raises UnusableOptionError."""
        targets = [list(map(self._target, own)) for own in places]
        try:
            self._swapper.swap_many(frames, targets, self._options, self._maskers)
        except InvalidOptionError as error:  # in its range, and still nothing that this model can do
            raise UnusableOptionError(error.detail, context=error.context) from error
        if self._enhancer is not None:
            blend = self.event.request.options.enhance_blend
            for frame, own in zip(frames, places, strict=True):
                for strength in sorted({place.strength for place in own}):
                    meshes = [place.mesh for place in own if place.strength == strength]
                    self._enhancer.enhance(frame, meshes, blend * strength)

    def _target(self, place: Place) -> Target:
        return Target(
            mesh=place.mesh,
            identity=self._identity(place.source),
            points=place.points,
            strength=place.strength,
            memory=self._memories.setdefault(place.track, Memory()),
        )

    def _identity(self, source: int) -> Identity:
        mapped = bool(self.event.request.options.mapping)
        if (key := source if mapped else -1) not in self._made:
            made = self._identities.of_source(source) if mapped else self._identities.of_all()
            self._made[key] = made
            self.warnings = (*self.warnings, *made.warnings)
        return self._made[key]

    @cached_property
    def _made(self) -> dict[int, Identity]:
        return {}

    @cached_property
    def _identities(self) -> Identities:
        sources, _ = measured.read(self.ctx.storage.load(self.event.landmarks))
        return Identities(self.event, sources, self._swapper, self.ctx)

    @cached_property
    def _swapper(self) -> Swapper:
        return self.ctx.models.get(self.event.request.options.swapper, Swapper)

    @cached_property
    def _maskers(self) -> list[Masker]:
        return maskers_of(self.event.request.options, self.ctx) if self._swapper.takes_maskers else []

    @cached_property
    def _options(self) -> SwapOptions:
        return swap_options(self.event.request.options)

    @cached_property
    def _enhancer(self) -> Enhancer | None:
        name = self.event.request.options.enhancer
        return self.ctx.models.get(name, Enhancer) if name else None
