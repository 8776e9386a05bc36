"""Look at every input before anything else does: Job -> the same Job, or a rejection with its reason."""

from __future__ import annotations

from functions.moderate.asked import permit
from shared.context import Context, SetupContext
from shared.events.payloads import Job
from shared.imaging.codec import decode
from shared.imaging.probe import Limits
from shared.rejections import ContentRefusedError
from shared.vision.protocols import Moderator


def setup(ctx: SetupContext) -> None:
    ctx.models.warm("moderator")


def handle(event: Job, ctx: Context) -> Job:
    permit(event.options, ctx.models)
    moderator = ctx.models.get("moderator", Moderator)
    policy = ctx.tenant.policy
    pictures = [*(("source", ref) for ref in event.source), ("target", event.target)]
    if event.reference is not None:
        pictures.append(("reference", event.reference))
    for role, ref in pictures:
        picture = decode(ctx.storage.load(ref), Limits(max_pixels=policy.max_pixels))
        score = moderator.score(picture.pixels)
        ctx.log.info("moderated", extra={"picture": role, "score": round(score, 3)})
        if score >= policy.nsfw_threshold:
            raise ContentRefusedError(
                f"The {role} picture is not safe for work.",
                context={"picture": role, "score": round(score, 3), "threshold": policy.nsfw_threshold},
            )
        ctx.deadline.check()
    return event
