"""Looks at pictures as moderation does, with a verdict that the job's origin names, and goes on as moderation would."""

from __future__ import annotations

from shared.context import Context
from shared.events.payloads import Job, Result
from shared.jobs import decisions
from shared.jobs.decisions import NSFW, PASS, REJECT, REVIEW, WORDS, Decision
from shared.jobs.holds import ReviewNeededError
from shared.rejections import ContentRefusedError


def handle(event: Job, ctx: Context) -> Job | Result:
    asked = event.origin.partition(":")[0]
    action = {"reject": REJECT, "review": REVIEW}.get(asked, PASS)
    seen = Decision("source", NSFW, "open_nsfw", "0" * 64, 0.1, 0.8, PASS)
    read = Decision("target", WORDS, "pp_ocr_v6_small", "1" * 64, 0.9, 0.0, action, words=(2,))
    decisions.keep(ctx.storage, (seen, read))
    if action == REJECT:
        raise ContentRefusedError(context={"picture": "target", "check": WORDS, "score": 0.9, "words": [2]})
    if action == REVIEW:
        raise ReviewNeededError(context={"checks": [WORDS]})
    return Result(event.job, event.target, 4, 3, (), "file:///x", "2030-01-01") if asked == "publish" else event
