"""From a reference to a picture with its faces, by the models that this installation has chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.context import Context
from shared.events.payloads import ObjectRef
from shared.imaging.probe import Limits
from shared.isolated.decode import decode
from shared.vision import measured
from shared.vision.finder import find_faces
from shared.vision.measured import Measured
from shared.vision.protocols import Detector, FoundFace, Image, Landmarker, Refiner

USUAL_SCORE = 0.5
"""Detector score of a face where nothing else is asked for; more is asked of the faces found, not of the search, so
that the index of a face does not depend on it."""


@dataclass(frozen=True)
class Seen:
    """A picture and its faces, from left to right."""

    image: Image
    faces: list[FoundFace]


@dataclass(frozen=True)
class Sight:
    ctx: Context

    def look(self, ref: ObjectRef, min_score: float = USUAL_SCORE) -> Seen:
        """Every face of at least the score, or of at least the usual one if that is lower."""
        picture = decode(self.ctx.storage.load(ref), Limits(max_pixels=self.ctx.tenant.policy.max_pixels))
        self.ctx.deadline.check()
        detector = self.ctx.models.get("detector", Detector)
        landmarker = self.ctx.models.get("landmarker", Landmarker)
        faces = find_faces(picture.pixels, detector, landmarker, min_score=min(min_score, USUAL_SCORE))
        return Seen(picture.pixels, faces)

    def measure(self, seen: Seen, faces: Sequence[FoundFace]) -> Measured:
        """What is known of some of the faces."""
        refiner = self.ctx.models.get("refiner", Refiner) if self.ctx.models.chosen("refiner") else None
        return measured.measure(seen.image, faces, refiner)
