"""Events of a source on their way to its sink: sent until the sink takes them, for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.delivery import accepted
from infra.local.eventing.sender import Sender
from infra.local.eventing.spec import Destination

log = logging.getLogger(__name__)

ATTEMPTS = 6
FIRST_WAIT = 0.5
TIMEOUT = 600.0

Resolve = Callable[[Destination], str | None]
"""The whole URL of a destination, None while it has none."""


class Emitter:
    """Posts events to destinations."""

    def __init__(self, sender: Sender, resolve: Resolve) -> None:
        self._sender = sender
        self._resolve = resolve

    async def emit(self, event: CloudEvent, sink: Destination) -> bool:
        """True once the sink has answered 2xx; False when it did not in half a minute of trying."""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(FIRST_WAIT * 2.0 ** (attempt - 1))
            url = self._resolve(sink)
            if url is None:
                log.warning("%s has no address yet", sink)
                continue
            answer = await self._sender.send(url, event, timeout=TIMEOUT, content_mode="binary", want_reply=False)
            if accepted(answer.code):
                return True
            log.warning("%s answers %d to event %s", sink, answer.code, event.id)
        return False
