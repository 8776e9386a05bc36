"""Replace each detected face in the target with the source identity: Faces -> Media."""

from __future__ import annotations

import io

import numpy as np

from shared.context import Context, SetupContext
from shared.events.payloads import Faces, Media, ObjectRef
from shared.imaging.codec import Picture, decode
from shared.imaging.probe import Limits
from shared.vision.protocols import SourceFace, SwapOptions, Swapper, Target


def setup(ctx: SetupContext) -> None:
    ctx.models.warm("mesh")


def handle(event: Faces, ctx: Context) -> Media:
    job = event.request
    swapper = ctx.models.get(job.options.swapper, Swapper)  # type: ignore[type-abstract]
    with np.load(io.BytesIO(ctx.storage.load(event.landmarks))) as landmarks:
        source_mesh, target_meshes = landmarks["source"], landmarks["target"]
    source = SourceFace(_open(job.source[event.source], ctx).pixels, source_mesh)
    identity = swapper.prepare([source])
    target = _open(job.target, ctx)
    ctx.deadline.check()
    options = SwapOptions(eyes=job.options.eyes, shape=job.options.shape)
    swapper.swap(target.pixels, [Target(mesh, identity) for mesh in target_meshes], options)
    pixels = target.pixels if target.alpha is None else np.dstack([target.pixels, target.alpha])
    data = io.BytesIO()
    np.save(data, pixels)
    ref = ctx.storage.save("pixels.npy", data.getvalue(), "application/octet-stream")
    return Media(
        job=event.job,
        request=job,
        pixels=ref,
        faces=event.target_faces,
        landmarks=event.landmarks,
        source_faces=event.source_faces or (event.source_face,),
    )


def _open(ref: ObjectRef, ctx: Context) -> Picture:
    return decode(ctx.storage.load(ref), Limits(max_pixels=ctx.tenant.policy.max_pixels))
