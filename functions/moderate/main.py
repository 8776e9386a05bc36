"""Look at every picture before anything else does: Job -> the same Job, or a rejection with its reason.

The frames of a video are looked at where they are decoded, in detect.
"""

from __future__ import annotations

from functions.moderate.asked import permit
from shared.context import Context, SetupContext
from shared.events.contract import VIDEO
from shared.events.payloads import Job
from shared.imaging.probe import Limits
from shared.isolated.decode import decode
from shared.moderation import looking


def setup(ctx: SetupContext) -> None:
    looking.warm(ctx)


def handle(event: Job, ctx: Context) -> Job:
    permit(event.options, ctx.models)
    video = event.media == VIDEO
    inspection, limits = looking.Inspection(ctx, video=video), Limits(max_pixels=ctx.tenant.policy.max_pixels)
    pictures = [("source", ref) for ref in event.source]
    if not video:
        pictures.append(("target", event.target))
    if event.reference is not None:
        pictures.append(("reference", event.reference))
    for role, ref in pictures:
        inspection.look(role, decode(ctx.storage.load(ref), limits))
    inspection.close()
    return event
