"""Moves deliveries: takes what is due, sends it, records what follows. Sleeps until the next event or due time.

Knows the store, the rules and the sender; where a destination lives is told by `resolve`.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from infra.local.eventing.delivery import (
    NO_ANSWER,
    NO_EVENT,
    Answer,
    Progress,
    Step,
    dead_letter_copy,
    error_data,
    next_step,
)
from infra.local.eventing.records import Attempt, Claim, Publication
from infra.local.eventing.sender import Sender
from infra.local.eventing.spec import Destination
from infra.local.eventing.store import Store
from infra.local.eventing.topology import Topology
from infra.local.eventing.writer import StoreError

Resolve = Callable[[Destination], str | None]
Clock = Callable[[], float]

_UNRESOLVED_WAIT = 0.5
_STORE_WAIT = 1.0
_BROKEN_WAIT = 30.0
_CLOCK_STEP = 1.0
_LONGEST_PAUSE = 5.0
"""How long a clock that was set back goes unnoticed."""

log = logging.getLogger(__name__)


class Dispatcher:
    """Several deliveries at once: at most `per_trigger` for one Trigger and `total` for all."""

    def __init__(
        self,
        store: Store,
        topology: Topology,
        resolve: Resolve,
        *,
        per_trigger: int,
        total: int,
        clock: Clock = time.time,
    ) -> None:
        self._clock = clock
        self._ahead = clock() - time.monotonic()
        self._store = store
        self._topology = topology
        self._resolve = resolve
        self._per_trigger = per_trigger
        self._total = total
        self._wake = asyncio.Event()
        self._running: dict[asyncio.Task[None], Claim] = {}
        self._loop: asyncio.Task[None] | None = None
        self._sender: Sender | None = None

    def start(self) -> None:
        """Begin with whatever the store holds."""
        self._sender = Sender()
        self._loop = asyncio.create_task(self._dispatch())

    def wake(self) -> None:
        """Something may be due that was not before."""
        self._wake.set()

    async def stop(self, grace: float) -> None:
        """Take nothing new, give what is in flight `grace` seconds, hand the rest back uncounted."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
        if self._running:
            await asyncio.wait(self._running, timeout=grace)
        interrupted = dict(self._running)
        for task in interrupted:
            task.cancel()
        if interrupted:
            await asyncio.wait(interrupted)
            with suppress(StoreError):  # the next start finds them anyway
                await self._store.release([claim.seq for claim in interrupted.values()], self._clock())
        if self._sender is not None:
            await self._sender.close()

    async def _dispatch(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._follow_clock()
                claims, due = await self._store.claim(self._slots(), self._total - len(self._running), self._clock())
            except StoreError as error:
                log.warning("cannot take deliveries, trying again: %s", error)
                claims, due = [], self._clock() + _STORE_WAIT
            for claim in claims:
                self._run(claim, self._attempt(claim))
            await self._pause(due)

    async def _follow_clock(self) -> None:
        """A clock that was set back must not make deliveries wait until it shows the old time again."""
        ahead = self._clock() - time.monotonic()
        if ahead < self._ahead - _CLOCK_STEP:
            log.warning("the clock was set back by %.0f s", self._ahead - ahead)
            await self._store.shift(ahead - self._ahead)
        self._ahead = ahead

    def _run(self, claim: Claim, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._running[task] = claim
        task.add_done_callback(self._finished)

    def _slots(self) -> dict[str, int]:
        """Free places per Trigger, least busy first, so that no Trigger can use up the total alone."""
        busy = Counter(claim.trigger for claim in self._running.values())
        triggers = sorted(self._topology.triggers, key=lambda key: busy[key])
        return {trigger: self._per_trigger - busy[trigger] for trigger in triggers if busy[trigger] < self._per_trigger}

    async def _pause(self, due: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else min(_LONGEST_PAUSE, max(0.0, due - self._clock()))):
                await self._wake.wait()

    def _finished(self, task: asyncio.Task[None]) -> None:
        claim = self._running.pop(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("delivery %s of %s broke off", claim.seq, claim.trigger, exc_info=task.exception())
            self._run(claim, self._give_back(claim, _BROKEN_WAIT))
        self._wake.set()

    async def _give_back(self, claim: Claim, wait: float) -> None:
        """Untried and uncounted, to be taken again after `wait` seconds."""
        await self._persist(
            f"release delivery {claim.seq}", lambda: self._store.release([claim.seq], self._clock() + wait)
        )

    async def _persist(self, what: str, write: Callable[[], Awaitable[None]]) -> None:
        """What is not on disk has not happened: try until it is."""
        while True:
            try:
                return await write()
            except StoreError as error:
                log.warning("cannot %s, trying again: %s", what, error)
                await asyncio.sleep(_STORE_WAIT)

    async def _attempt(self, claim: Claim) -> None:
        delivery = self._topology.delivery(claim.trigger)
        burying = claim.progress.state == "burying"
        target = delivery.dead_letter_sink if burying else self._topology.triggers[claim.trigger].subscriber
        if target is None:
            await self._record(claim, Step(Progress("dropped", claim.progress.failures)), None, None)
            return
        url = self._resolve(target)
        if url is None:
            log.warning("%s: %s cannot be reached yet", claim.trigger, target)
            await self._give_back(claim, _UNRESOLVED_WAIT)
            return
        event = claim.publication.event
        if burying:
            event = dead_letter_copy(event, claim.destination, claim.code or 0, claim.answer)
        assert self._sender is not None
        answer = await self._sender.send(
            url, event, timeout=delivery.timeout, content_mode=delivery.format, want_reply=not burying
        )
        if not answer.reached:
            await self._give_back(claim, 0.0)
            return
        await self._conclude(claim, target.cluster_url(url), answer, next_step(claim.progress, answer.code, delivery))

    async def _conclude(self, claim: Claim, url: str, answer: Answer, step: Step) -> None:
        _tell(claim, url, answer, step)
        attempt = None
        if claim.progress.state == "waiting":
            attempt = Attempt(answer.code, error_data(answer.body), url)
        reply = None
        if answer.reply is not None:
            reply = self._topology.reply(claim.publication, answer.reply)
            if reply is None:
                log.error("%s: reply %s has no hops left, dropped", claim.trigger, answer.reply.type)
        await self._record(claim, step, attempt, reply)

    async def _record(self, claim: Claim, step: Step, attempt: Attempt | None, reply: Publication | None) -> None:
        await self._persist(
            f"record delivery {claim.seq}", lambda: self._store.settle(claim, step, attempt, reply, self._clock())
        )


def _tell(claim: Claim, url: str, answer: Answer, step: Step) -> None:
    """Log what a person should know: refusals, dead letters, losses."""
    state, event = step.progress.state, claim.publication.event
    what = f"{claim.trigger}: {url} answered {answer.code} to {event.id} ({event.type})"
    if answer.code in (NO_ANSWER, NO_EVENT):
        what = f"{what}, {error_data(answer.body)}"
    if state in {"done", "dead"}:
        log.debug("%s: %s", what, state)
    elif state == "dropped":
        log.error("%s: given up and dropped; replay can send it again", what)
    elif state == claim.progress.state:
        log.info("%s: again in %.1f s", what, step.wait)
    else:
        log.warning("%s: to the dead letter sink", what)
