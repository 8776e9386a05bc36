"""Who is where in one segment of a video: Segment -> Tracks. The sources are looked at as for a picture."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from functions.detect import sources
from functions.detect.picking import Picker
from functions.detect.sources import Sources, told
from shared.context import Context
from shared.errors import ObjectNotFoundError, PreconditionFailedError
from shared.events.choices import Options, by_who
from shared.events.payloads import Job, Segment, Tracks
from shared.jobs.film import open_plan
from shared.rejections import ModelForbiddenError
from shared.storage import keys
from shared.vision import measured
from shared.vision.protocols import Detector, Embedder, Landmarker, Refiner
from shared.vision.recent import Recent
from shared.vision.tracking import gallery, record
from shared.vision.tracking.casting import Known, choose
from shared.vision.tracking.finishing import Cast
from shared.vision.tracking.gallery import Gallery
from shared.vision.tracking.tracks import Tracks as Found
from shared.vision.tracking.trail import Models

BYTES = "application/octet-stream"
_SOURCES: Recent[tuple[str, ...], Sources] = Recent(8)
"""By tenant, its model tag and job: one video's segments have the same sources."""


def tracks(event: Segment, ctx: Context) -> Tracks:
    """Raises what decoding does, and what is raised about the job's sources."""
    from functions.detect.following import Following
    from shared.moderation.samples import Samples

    job, plan = event.request, open_plan(ctx.storage.load(event.plan))
    people, part = _People(job, ctx), plan.parts[event.index]
    key = (ctx.tenant.name, ctx.tenant.policy.model_tag, event.job)
    found = _SOURCES.get(key, lambda: sources.look(job, ctx))
    found.suiting.check(sorted({pair.source for pair in job.options.mapping}), found.best)
    with TemporaryDirectory(prefix="detect-") as name:
        ctx.storage.fetch(part.clip, clip := Path(name) / "clip.mkv")
        following = Following(ctx, job.options, plan.facts, part, people.models)
        with Samples(ctx, plan.facts, event.index) as samples:
            cast, warned = following.follow(clip, samples)
        clip.unlink()
        with (kept := Path(name) / "tracks.npz").open("wb") as file:
            record.write(people.chosen(cast), file)
        tracked = ctx.storage.save_file(f"tracks.{event.index}.npz", kept, BYTES)
    return Tracks(
        job=event.job,
        request=job,
        plan=event.plan,
        index=event.index,
        tracks=tracked,
        landmarks=ctx.storage.save("landmarks.npz", measured.write(found.measured, found.best, measured.none()), BYTES),
        source=found.best,
        source_faces=told(found.faces),
        warnings=(*found.warnings, *warned),
    )


class _People:
    """How a job's people are told apart."""

    def __init__(self, job: Job, ctx: Context) -> None:
        """Raises NoEmbedderError as for a picture: before anything is looked at."""
        self._options, self._ctx, self._picker = job.options, ctx, Picker(job, ctx)
        models = ctx.models
        self.models = Models(
            detector=models.get("detector", Detector),
            landmarker=models.get("landmarker", Landmarker),
            embedder=self._picker.embedder or _embedder(job.options, ctx),
            refiner=models.get("refiner", Refiner) if models.chosen("refiner") else None,
        )

    def chosen(self, cast: Cast) -> Found:
        """The tracks, with those whom the job means."""
        embedder = self._picker.embedder
        reference = self._picker.reference(embedder) if embedder else None
        known = self._known()
        found, introduced = choose(cast, self._options, Known(reference, known))
        if introduced is not None and known is None and not self._introduce(introduced):
            found, _ = choose(cast, self._options, Known(reference, self._known()))
        return found

    def _known(self) -> Gallery | None:
        storage = self._ctx.storage
        with suppress(ObjectNotFoundError):
            return gallery.read(storage.store.get(self._key)[0]) if by_who(self._options) else None
        return None

    def _introduce(self, people: Gallery) -> bool:
        """Whether these are the first."""
        try:
            self._ctx.storage.store.create(self._key, gallery.write(people), content_type=BYTES)
        except PreconditionFailedError:
            return False
        return True

    @property
    def _key(self) -> str:
        storage = self._ctx.storage
        return keys.job(storage.tenant, storage.job, storage.stage, "people.npz")


def _embedder(options: Options, ctx: Context) -> Embedder | None:
    """Of a job that does better with one: None where there is none that its tenant may use."""
    name = ctx.models.chosen("embedder")
    if not name or not by_who(options):
        return None
    with suppress(ModelForbiddenError):
        return ctx.models.get(name, Embedder)
    return None
