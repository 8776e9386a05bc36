"""Find the sources' faces and the target's: Job -> Faces. Boxes travel, dense landmarks are stored."""

from __future__ import annotations

from functions.detect.picking import Picker
from functions.detect.seeing import Sight
from functions.detect.suiting import Suiting
from shared.context import Context, SetupContext
from shared.events.payloads import Face, Faces, Job
from shared.rejections import NoFaceInSourceError
from shared.vision import measured
from shared.vision.choice import choose_source, source_warnings
from shared.vision.protocols import FoundFace


def setup(ctx: SetupContext) -> None:
    refiner = ("refiner",) if ctx.models.chosen("refiner") else ()
    ctx.models.warm("detector", "landmarker", *refiner)


def handle(event: Job, ctx: Context) -> Faces:
    picker, sight, suiting = Picker(event, ctx), Sight(ctx), Suiting(event, ctx)
    sources, parts = [], []
    for ref in event.source:
        seen = sight.look(ref)
        sources.append(choose_source(seen.faces, event.options.source_face))
        parts.append(sight.measure(seen, sources[-1:]))
        suiting.add(seen.image, sources[-1])
    if not sources:
        raise NoFaceInSourceError("The job names no source picture.")
    # of several pictures of one person, the most frontal shows the most of the face
    best = min(range(len(sources)), key=lambda index: abs(sources[index].yaw))
    seen = sight.look(event.target, event.options.min_score)
    targets = picker.pick(seen)
    suiting.check(targets.sources, best)
    data = measured.write(measured.joined(parts), best, sight.measure(seen, targets.faces))
    return Faces(
        job=event.job,
        request=event,
        source=best,
        source_face=_face(sources[best]),
        source_faces=tuple(map(_face, sources)),
        target_faces=tuple(map(_face, targets.faces)),
        landmarks=ctx.storage.save("landmarks.npz", data, "application/octet-stream"),
        assigned=targets.sources,
        warnings=tuple(dict.fromkeys(warning for source in sources for warning in source_warnings(source))),
    )


def _face(found: FoundFace) -> Face:
    x0, y0, x1, y1 = (round(float(side), 2) for side in found.box)
    return Face(x0, y0, round(x1 - x0, 2), round(y1 - y0, 2), round(found.score, 4), round(found.yaw, 2))
