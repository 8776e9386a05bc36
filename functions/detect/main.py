"""Find the source's face and the target's faces: Job -> Faces. Boxes travel, dense landmarks are stored."""

from __future__ import annotations

import io

import numpy as np

from shared.context import Context, SetupContext
from shared.errors import NoFaceInSourceError
from shared.events.payloads import Face, Faces, Job, ObjectRef
from shared.imaging.codec import decode
from shared.imaging.probe import Limits
from shared.vision.choice import choose_source, choose_targets
from shared.vision.finder import find_faces
from shared.vision.protocols import Detector, FoundFace, Landmarker


def setup(ctx: SetupContext) -> None:
    ctx.models.warm("detector", "landmarker")


def handle(event: Job, ctx: Context) -> Faces:
    sources = [choose_source(_find(ref, ctx), event.options.source_face) for ref in event.source]
    if not sources:
        raise NoFaceInSourceError("The job names no source picture.")
    # of several pictures of one person, the most frontal shows the most of the face
    best = min(range(len(sources)), key=lambda index: abs(sources[index].yaw))
    targets = choose_targets(_find(event.target, ctx), event.options.faces, event.options.min_face)
    data = io.BytesIO()
    np.savez(data, source=sources[best].mesh, target=np.stack([face.mesh for face in targets]))
    return Faces(
        job=event.job,
        request=event,
        source=best,
        source_face=_face(sources[best]),
        target_faces=tuple(map(_face, targets)),
        landmarks=ctx.storage.save("landmarks.npz", data.getvalue(), "application/octet-stream"),
    )


def _find(ref: ObjectRef, ctx: Context) -> list[FoundFace]:
    picture = decode(ctx.storage.load(ref), Limits(max_pixels=ctx.tenant.policy.max_pixels))
    ctx.deadline.check()
    detector = ctx.models.get("detector", Detector)  # type: ignore[type-abstract]
    landmarker = ctx.models.get("landmarker", Landmarker)  # type: ignore[type-abstract]
    return find_faces(picture.pixels, detector, landmarker)


def _face(found: FoundFace) -> Face:
    x0, y0, x1, y1 = (round(float(side), 2) for side in found.box)
    return Face(x0, y0, round(x1 - x0, 2), round(y1 - y0, 2), round(found.score, 4), round(found.yaw, 2))
