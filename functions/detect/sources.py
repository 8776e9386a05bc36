"""The face of each source picture, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from functions.detect.seeing import Sight
from functions.detect.suiting import Suiting
from shared.context import Context
from shared.events.payloads import Face, Job
from shared.rejections import NoFaceInSourceError
from shared.vision import measured
from shared.vision.choice import choose_source, source_warnings
from shared.vision.measured import Measured
from shared.vision.protocols import FoundFace


@dataclass(frozen=True)
class Sources:
    faces: tuple[FoundFace, ...]
    measured: Measured
    suiting: Suiting

    @property
    def best(self) -> int:
        """Of several pictures of one person, the most frontal: it shows the most of the face."""
        return min(range(len(self.faces)), key=lambda index: abs(self.faces[index].yaw))

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(warning for face in self.faces for warning in source_warnings(face)))


def look(job: Job, ctx: Context) -> Sources:
    """Raises NoFaceInSourceError, AmbiguousSourceFaceError and what decoding a picture does."""
    sight, suiting = Sight(ctx), Suiting(job, ctx)
    faces: list[FoundFace] = []
    parts: list[Measured] = []
    for ref in job.source:
        seen = sight.look(ref)
        faces.append(choose_source(seen.faces, job.options.source_face))
        parts.append(sight.measure(seen, faces[-1:]))
        suiting.add(seen.image, faces[-1])
    if not faces:
        raise NoFaceInSourceError("The job names no source picture.")
    return Sources(tuple(faces), measured.joined(parts), suiting)


def told(faces: Sequence[FoundFace]) -> tuple[Face, ...]:
    """As events tell them."""
    return tuple(map(_face, faces))


def _face(found: FoundFace) -> Face:
    x0, y0, x1, y1 = (round(float(side), 2) for side in found.box)
    return Face(x0, y0, round(x1 - x0, 2), round(y1 - y0, 2), round(found.score, 4), round(found.yaw, 2))
