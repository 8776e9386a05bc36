"""Tell the tenant's webhook how a job ended, signed after Standard Webhooks, with one message id for all tries."""

from __future__ import annotations

from dataclasses import asdict

from shared import records
from shared.audit import journal
from shared.audit.lines import DELIVERED, REFUSED, WEBHOOK, Line, known
from shared.context import Context
from shared.events.payloads import Failure, Rejection, Result
from shared.rejections import DeliveryRefusedError
from shared.webhooks import sender

NAMES = {"completed": "job.completed", "rejected": "job.rejected", "failed": "job.failed"}


def handle(event: Result | Rejection | Failure, ctx: Context) -> None:
    hook = ctx.tenant.webhook
    if not hook.url:
        return
    name = NAMES[event.outcome]
    body = records.dumps({"type": name, "timestamp": sender.timestamp(), "data": asdict(event)}).decode()
    try:
        seconds = min(sender.SECONDS, ctx.deadline.remaining())
        status = sender.send(hook, f"{event.job}.{event.outcome}", body, seconds=seconds)
        journal.note(Line(WEBHOOK, DELIVERED, "stage:notify", facts={"status": status}))
    except DeliveryRefusedError as error:
        # Not raised on: a rejected event would come back here and be refused again.
        ctx.log.warning("webhook refused: %s", error)
        ctx.metrics.count("webhooks_refused")
        journal.note(Line(WEBHOOK, REFUSED, "stage:notify", error.code, known(error.context)))
        refusal = records.dumps({"detail": error.detail, **error.context})
        ctx.storage.save(f"refused.{event.outcome}.json", refusal, "application/json")
