"""The identities that a job puts onto its targets: made once, and kept for the next job with the same pictures."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from shared.context import Context
from shared.events.payloads import Faces, Tracks
from shared.imaging.probe import Limits
from shared.isolated.decode import decode
from shared.vision.measured import Measured
from shared.vision.protocols import Identity, SourceFace, Swapper
from shared.vision.recent import Recent

_KEPT: Recent[tuple[str, ...], Identity] = Recent(8)
"""By tenant, its model tag, model and, for each source, the digests of its picture and of the face in it. The largest
identities, textures of the embedded swapper, take 5 MB."""


@dataclass(frozen=True)
class Identities:
    event: Faces | Tracks
    sources: Measured
    """As many faces as the job has sources; the event's one source face where an older detect measured no other."""
    swapper: Swapper
    ctx: Context

    def of_targets(self, event: Faces) -> list[Identity]:
        """One for each target face: that of its own source, or the one that all sources show together."""
        if event.assigned:
            single = {index: self.of_source(index) for index in sorted(set(event.assigned))}
            return [single[index] for index in event.assigned]
        return [self.of_all()] * len(event.target_faces)

    def of_all(self) -> Identity:
        """The one that all sources show together."""
        return self._made(tuple(range(len(self.sources))))

    def of_source(self, index: int) -> Identity:
        return self._made((index,))

    def _made(self, indices: tuple[int, ...]) -> Identity:
        tenant = self.ctx.tenant
        key = (tenant.name, tenant.policy.model_tag, self.event.request.options.swapper, *map(self._digest, indices))
        return _KEPT.get(key, lambda: self.swapper.prepare([self._source(index) for index in indices]))

    def _digest(self, index: int) -> str:
        face = hashlib.sha256(self.sources.meshes[index].tobytes() + self.sources.points[index].tobytes())
        return self.event.request.source[self._picture(index)].digest + face.hexdigest()

    def _source(self, index: int) -> SourceFace:
        data = self.ctx.storage.load(self.event.request.source[self._picture(index)])
        image = decode(data, Limits(max_pixels=self.ctx.tenant.policy.max_pixels)).pixels
        self.ctx.deadline.check()
        return SourceFace(image, self.sources.meshes[index], self.sources.five(index))

    def _picture(self, index: int) -> int:
        return index if len(self.sources) == len(self.event.request.source) else self.event.source
