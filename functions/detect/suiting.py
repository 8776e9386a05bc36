"""Whether the sources suit the swapper: what is refused is refused before the swap wakes.

Only the embedded swapper is examined: learned ones draw a face anew, whatever light or laugh its picture shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.context import Context
from shared.events.payloads import Job
from shared.rejections import SourceUnsuitedError
from shared.vision.choice import source_warnings
from shared.vision.protocols import FoundFace, Image, SourceFace, Swapper
from shared.vision.unsuited import reasons, refused


class Suiting:
    """What was seen of each source, in the job's order."""

    def __init__(self, job: Job, ctx: Context) -> None:
        self._how, self._swapper = job.options.unsuited_source, job.options.swapper
        self._models = ctx.models
        self._embedded = self._how != "warn" and ctx.models.embedded(self._swapper)
        self._warnings: list[tuple[str, ...]] = []

    def add(self, image: Image, face: FoundFace) -> None:
        examined: tuple[str, ...] = ()
        if self._embedded:
            examined = self._models.get(self._swapper, Swapper).examine(SourceFace(image, face.mesh))
        self._warnings.append((*source_warnings(face), *examined))

    def check(self, assigned: Sequence[int], best: int) -> None:
        """`assigned`: as in Faces; `best`: the one source that the embedded swapper takes otherwise.

        Raises SourceUnsuitedError.
        """
        used = sorted(set(assigned)) or ([best] if self._embedded else range(len(self._warnings)))
        for index in used:
            if found := refused(self._warnings[index], self._how):
                raise SourceUnsuitedError(
                    f"Source {index}: {reasons(found)} `unsuited_source`: `warn` swaps it all the same.",
                    context={"warnings": list(found), "source": index, "field": "unsuited_source"},
                )
