"""Enlarge the swapped picture and restore its faces, as the job asks: Media -> Media. Woken only by jobs that do."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import cv2
import numpy as np

from shared.context import Context
from shared.errors import InvalidCloudEventError
from shared.events.payloads import Media
from shared.imaging import raw
from shared.imaging.canvas import Still
from shared.vision import measured
from shared.vision.protocols import Enhancer, Floats, Upscaler


def handle(event: Media, ctx: Context) -> Media:
    options, factor = event.request.options, 1
    enhancer = ctx.models.get(options.enhancer, Enhancer) if options.enhancer else None
    frame, alpha = raw.unpack(ctx.storage.load(event.pixels))
    if options.upscaler:
        upscaler = ctx.models.get(options.upscaler, Upscaler)
        # before the faces: restored at their larger size, they keep what the restorer adds
        frame, factor = upscaler.upscale(frame), upscaler.factor
        ctx.deadline.check()
    if enhancer:
        enhancer.enhance(Still(frame), _meshes(event, ctx, factor), options.enhance_blend)
    if alpha is not None:
        alpha = cast(raw.Plane, cv2.resize(alpha, frame.shape[1::-1], interpolation=cv2.INTER_LINEAR))
    ref = ctx.storage.save("pixels.npy", raw.pack(frame, alpha), raw.CONTENT_TYPE)
    return replace(event, pixels=ref, landmarks=event.landmarks if factor == 1 else None)


def _meshes(event: Media, ctx: Context, factor: int) -> list[Floats]:
    """The swapped faces' landmarks in pixels of the picture, whose pixel centres are whole numbers."""
    if event.landmarks is None:
        raise InvalidCloudEventError("data: the landmarks are missing.", context={"attribute": "data"})
    _, faces = measured.read(ctx.storage.load(event.landmarks))
    meshes = faces.meshes * np.float32(factor)
    meshes[..., :2] += np.float32((factor - 1) / 2)
    return list(meshes)
