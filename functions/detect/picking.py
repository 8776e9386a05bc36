"""Which of the target's faces a job means; a reference picture is looked at only when it says so."""

from __future__ import annotations

from collections.abc import Sequence

from functions.detect.seeing import Seen, Sight
from shared.context import Context
from shared.events.payloads import Job
from shared.rejections import ModelForbiddenError, NoEmbedderError, NoFaceInReferenceError
from shared.vision.choice import Targets, Usable, choose_alike, choose_mapped, choose_reference, choose_targets
from shared.vision.geometry import five_points
from shared.vision.protocols import Embedder, Floats, FoundFace
from shared.vision.recent import Recent

_REFERENCES: Recent[tuple[str, str, str, str], Floats] = Recent(64)
"""Vectors by tenant, its model tag, recogniser and digest of the picture: a batch names one person a hundred times."""


class Picker:
    """Made before any picture is looked at: a job that cannot be served ends at once."""

    def __init__(self, job: Job, ctx: Context) -> None:
        """Raises NoEmbedderError for faces by reference where the tenant may use no recogniser."""
        self._job, self._ctx = job, ctx
        self._embedder = _embedder(ctx) if job.options.faces == "reference" else None

    def pick(self, seen: Seen) -> Targets:
        """Raises what shared.vision.choice does."""
        options = self._job.options
        if options.mapping:
            usable = Usable(options.min_face, options.min_score)
            return choose_mapped(seen.faces, options.mapping, usable, options.order)
        how = options.faces if self._embedder is None else "many"
        faces = choose_targets(seen.faces, how, options.min_face, order=options.order, min_score=options.min_score)
        if self._embedder is None:
            return Targets(faces)
        reference = self.reference(self._embedder)
        return Targets(choose_alike(faces, _vectors(self._embedder, seen, faces), reference, options.similarity))

    @property
    def embedder(self) -> Embedder | None:
        """Of a job that needs one."""
        return self._embedder

    def reference(self, embedder: Embedder) -> Floats:
        """[512]: the vector of the face on the job's reference picture."""
        ref, ctx = self._job.reference, self._ctx
        if ref is None:
            raise NoFaceInReferenceError("The job names no reference picture.")

        def measure() -> Floats:
            seen = Sight(ctx).look(ref)
            vector: Floats = _vectors(embedder, seen, [choose_reference(seen.faces)])[0]
            return vector

        return _REFERENCES.get(
            (ctx.tenant.name, ctx.tenant.policy.model_tag, ctx.models.chosen("embedder"), ref.digest), measure
        )


def _vectors(embedder: Embedder, seen: Seen, faces: Sequence[FoundFace]) -> Floats:
    return embedder.embed(seen.image, [five_points(face.mesh) for face in faces])


def _embedder(ctx: Context) -> Embedder:
    name = ctx.models.chosen("embedder")
    if not name:
        raise NoEmbedderError("This installation has no face recogniser, which faces by reference need.")
    try:
        return ctx.models.get(name, Embedder)
    except ModelForbiddenError as error:
        raise NoEmbedderError(
            f"Faces by reference need a face recogniser. {error.detail}", context=error.context
        ) from error
