"""Replace each detected face in the target with its source's identity: Faces -> Media, of a segment Tracks -> Clip."""

from __future__ import annotations

from functions.swap.choices import maskers_of, swap_options
from functions.swap.identities import Identities
from functions.swap.video import clip
from shared.context import Context, SetupContext
from shared.errors import InvalidOptionError
from shared.events.payloads import Clip, Faces, Media, Size, Tracks
from shared.imaging import raw
from shared.imaging.probe import Limits
from shared.isolated.decode import decode
from shared.rejections import UnusableOptionError
from shared.vision import measured
from shared.vision.protocols import Swapper, Target


def setup(ctx: SetupContext) -> None:
    ctx.models.warm("mesh")


def handle(event: Faces | Tracks, ctx: Context) -> Media | Clip:
    return picture(event, ctx) if isinstance(event, Faces) else clip(event, ctx)


def picture(event: Faces, ctx: Context) -> Media:
    job, options = event.request, event.request.options
    swapper = ctx.models.get(options.swapper, Swapper)
    maskers = maskers_of(options, ctx) if swapper.takes_maskers else []
    sources, faces = measured.read(ctx.storage.load(event.landmarks))
    chosen = Identities(event, sources, swapper, ctx).of_targets(event)
    target = decode(ctx.storage.load(job.target), Limits(max_pixels=ctx.tenant.policy.max_pixels))
    ctx.deadline.check()
    targets = [Target(faces.meshes[index], identity, faces.five(index)) for index, identity in enumerate(chosen)]
    try:
        swapper.swap(target.pixels, targets, swap_options(options), maskers)
    except InvalidOptionError as error:  # in its range, and still nothing that this model can do
        raise UnusableOptionError(error.detail, context=error.context) from error
    return Media(
        job=event.job,
        request=job,
        pixels=ctx.storage.save("pixels.npy", raw.pack(target.pixels, target.alpha), raw.CONTENT_TYPE),
        faces=event.target_faces,
        size=Size(target.pixels.shape[1], target.pixels.shape[0]),
        landmarks=event.landmarks,
        source_faces=event.source_faces or (event.source_face,),
        warnings=tuple(dict.fromkeys((*event.warnings, *(word for one in chosen for word in one.warnings)))),
        provider=ctx.models.provider(options.swapper),
    )
