"""Encode the picture in the asked format, store it among the tenant's results, make its link: Media -> Result."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import numpy as np

from shared.context import Context
from shared.events.payloads import Media, Result
from shared.imaging.codec import Picture, encode, output_format


def handle(event: Media, ctx: Context) -> Result:
    options, target = event.request.options, event.request.target
    pixels = np.load(io.BytesIO(ctx.storage.load(event.pixels)))
    wanted = output_format(options.format, target.content_type.removeprefix("image/"))
    alpha = np.ascontiguousarray(pixels[..., 3]) if pixels.shape[2] == 4 else None
    picture = Picture(np.ascontiguousarray(pixels[..., :3]), alpha, wanted)
    data, content_type = encode(picture, wanted, options.quality)
    name = f"{event.job}.{wanted.replace('jpeg', 'jpg')}"
    image = ctx.storage.publish(name, data, content_type)
    seconds = ctx.tenant.policy.link_seconds
    return Result(
        job=event.job,
        image=image,
        width=pixels.shape[1],
        height=pixels.shape[0],
        faces=event.faces,
        link=ctx.storage.link(image, seconds, name),
        expires=(datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds"),
        origin=event.request.origin,
        source_faces=event.source_faces,
    )
