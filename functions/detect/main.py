"""Find the sources' faces and the target's: Job -> Faces, Segment -> Tracks. Boxes travel, meshes are stored."""

from __future__ import annotations

from functions.detect import sources, video
from functions.detect.picking import Picker
from functions.detect.seeing import Sight
from functions.detect.sources import told
from shared.context import Context, SetupContext
from shared.events.payloads import Faces, Job, Segment, Tracks
from shared.vision import measured


def setup(ctx: SetupContext) -> None:
    refiner = ("refiner",) if ctx.models.chosen("refiner") else ()
    ctx.models.warm("detector", "landmarker", *refiner)


def handle(event: Job | Segment, ctx: Context) -> Faces | Tracks:
    return video.tracks(event, ctx) if isinstance(event, Segment) else picture(event, ctx)


def picture(event: Job, ctx: Context) -> Faces:
    picker, sight = Picker(event, ctx), Sight(ctx)
    found = sources.look(event, ctx)
    seen = sight.look(event.target, event.options.min_score)
    targets = picker.pick(seen)
    found.suiting.check(targets.sources, found.best)
    data = measured.write(found.measured, found.best, sight.measure(seen, targets.faces))
    return Faces(
        job=event.job,
        request=event,
        source=found.best,
        source_face=told(found.faces)[found.best],
        source_faces=told(found.faces),
        target_faces=told(targets.faces),
        landmarks=ctx.storage.save("landmarks.npz", data, "application/octet-stream"),
        assigned=targets.sources,
        warnings=found.warnings,
    )
