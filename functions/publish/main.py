"""Look at the finished picture, encode it in the asked format, store it, make its link: Media | Video -> Result."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from functions.publish import video
from shared.context import Context, SetupContext
from shared.events.payloads import Face, Media, Result, Size, Video
from shared.imaging import raw
from shared.imaging.codec import Picture, encode, output_format
from shared.imaging.reduce import reduce
from shared.moderation import looking
from shared.moderation.finished import checked
from shared.vision.sizing import Extent, result_size


def setup(ctx: SetupContext) -> None:
    looking.warm(ctx)


def handle(event: Media | Video, ctx: Context) -> Result:
    if isinstance(event, Video):
        return video.publish(event, ctx)
    options, target = event.request.options, event.request.target
    pixels, alpha = raw.unpack(ctx.storage.load(event.pixels))
    made = Extent(pixels.shape[1], pixels.shape[0])
    sent = Extent(event.size.width, event.size.height) if event.size else made
    size = result_size(made, sent, options.client, ctx.tenant.policy.max_output)
    wanted = output_format(options.format, target.content_type.removeprefix("image/"))
    picture, blurred = checked(reduce(Picture(pixels, alpha, wanted), *size), ctx)
    data, content_type = encode(picture, wanted, options.quality)
    name = f"{event.job}.{wanted.replace('jpeg', 'jpg')}"
    image = ctx.storage.publish(name, data, content_type)
    seconds = ctx.tenant.policy.link_seconds
    return Result(
        job=event.job,
        image=image,
        width=size.width,
        height=size.height,
        faces=tuple(_scaled(face, size.width / sent.width, size.height / sent.height) for face in event.faces),
        link=ctx.storage.link(image, seconds, name),
        expires=(datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds"),
        origin=event.request.origin,
        resized_from=Size(*made) if size != made else None,
        source_faces=event.source_faces,
        warnings=(*event.warnings, *blurred),
        provider=event.provider,
    )


def _scaled(face: Face, x: float, y: float) -> Face:
    if (x, y) == (1, 1):
        return face
    left, top, width, height = (round(v, 2) for v in (face.x * x, face.y * y, face.width * x, face.height * y))
    return replace(face, x=left, y=top, width=width, height=height)
