"""Several stages in one process: what one of them replies is handed to the next without a broker in between.

Each stage is served under its own path by its own Receiver, so that tenants, leases, records, outcomes and metrics
are those of a stage that runs alone. A handover is a short cut and nothing else: an event is handed over exactly if
the next stage's Trigger would match it, and one that the next stage could not finish is answered to the broker, whose
Triggers deliver it again. So retries, dead letters and a stop in mid-chain need no rules of their own. What was handed
over is in the job's folder, in the stage's record; the broker sees the last event only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from flask import Flask

from shared import records
from shared.errors import ConfigError
from shared.events import codec, filters
from shared.events.filters import Filter
from shared.serving import web
from shared.serving.answers import Reply
from shared.serving.receive import Receiver, Services

_TAKEN = (200, 204)
"""The next stage has done its part; 200 carries its own reply."""


def mount(app: Flask, services: Sequence[Services], handovers: str, limit: int) -> None:
    """Serve each stage at `POST /<stage>`, the first also at `POST /`. Raises ConfigError.

    `handovers`: the setting of that name; `limit`: largest event in bytes.
    """
    receivers = {each.stage.name: receiver for each, receiver in zip(services, _receivers(services), strict=True)}
    fused = Fused(receivers, _handovers(handovers, receivers))
    for name in receivers:
        web.add_events(app, partial(fused.deliver, name), limit, f"/{name}")
    web.add_events(app, partial(fused.deliver, next(iter(receivers))), limit)


@dataclass(frozen=True)
class Fused:
    receivers: Mapping[str, Receiver]
    handovers: Mapping[str, Filter]
    """By stage: the events of the others that it takes here."""

    def deliver(self, stage: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The last reply of the stages that could do their part; all of them share the time of one event."""
        ends = time.monotonic() + self.receivers[stage].services.timeout
        reply = self.receivers[stage](headers, body, ends)
        waiting = {name: takes for name, takes in self.handovers.items() if name != stage}
        while (name := self._following(reply, waiting)) is not None:
            del waiting[name]  # each at most once: filters that lead in a circle end
            handed = self.receivers[name](_lowered(reply), reply.body, ends)
            if handed.status not in _TAKEN:
                break
            reply = handed
        return reply

    def _following(self, reply: Reply, waiting: Mapping[str, Filter]) -> str | None:
        """Which of the stages takes this reply; none once the process has to end."""
        services = next(iter(self.receivers.values())).services
        if reply.status != 200 or services.lifecycle.stopping:
            return None
        attributes = filters.attributes(codec.decode(_lowered(reply), reply.body, limit=services.max_bytes))
        return next((name for name, takes in waiting.items() if takes(attributes)), None)


def _lowered(reply: Reply) -> dict[str, str]:
    return {name.lower(): value for name, value in reply.headers}


def _receivers(services: Sequence[Services]) -> Iterator[Receiver]:
    for each in services:
        if each.stage.handle is None:
            raise ConfigError(f"The stage {each.stage.name} takes raw events and runs alone.")
        yield Receiver(each, each.stage.handle)


def _handovers(text: str, receivers: Mapping[str, Receiver]) -> dict[str, Filter]:
    try:
        table = records.loads(text or "{}")
    except ValueError:
        table = None
    if not isinstance(table, dict):
        raise ConfigError("Must be a JSON object.", context={"field": "handovers"})
    if unknown := sorted(set(table) - set(receivers)):
        raise ConfigError("Names a stage that does not run here.", context={"field": f"handovers.{unknown[0]}"})
    return {name: filters.every(f"handovers.{name}", entries) for name, entries in table.items()}
