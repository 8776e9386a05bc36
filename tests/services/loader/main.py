"""Does with its job's target, through the store it is handed, what the job's `origin` says."""

from __future__ import annotations

from shared.context import Context
from shared.events.payloads import Job, Payload, Rejection


def handle(event: Job, ctx: Context) -> Payload | None:
    ref = event.target
    match event.origin:
        case "load":
            ctx.storage.load(ref)
        case "read":
            ctx.storage.read(ref.key)
        case "head":
            ctx.storage.head(ref.key)
        case "list":
            ctx.storage.list(ref.key)
        case "link":
            ctx.storage.link(ref, 60, "x")
        case "save":
            ctx.storage.save(ref.key, b"x", "image/png")
        case "publish":
            ctx.storage.publish(ref.key, b"x", "image/png")
    return Rejection(event.job, "loader", "done", f"{event.origin} did it.", 422)
