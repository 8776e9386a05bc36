"""The pods of one Service: woken when requests need them, filled, put to sleep when idle.

Everything here runs in one event loop without waiting between a decision and its effect, so a pod that is told to
stop can no longer be handed a request. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass

from infra.local.serving.model import ServiceSpec
from infra.local.serving.pods import Pod, PodRuntime, Wake, WakeError
from infra.local.serving.process import first_of

log = logging.getLogger(__name__)

FAILURES_BEFORE_REFUSAL = 3
"""Wakes that must fail in a row before those who wait are told; the next request tries again."""


class QueueFullError(Exception):
    """More requests wait than the queue holds."""


@dataclass(frozen=True, slots=True)
class FleetLimits:
    """What the platform adds to the manifest.

    `idle`: seconds without a request before a pod goes, in place of window and retention; None keeps those.
    `max_pods`: most pods of one Service on this machine, 0 for no limit besides max-scale.
    `queue`: requests that may wait for one Service (Knative's activator holds 10,000).
    `backoff`, `backoff_limit`: wait after the first failed wake, doubled up to the limit.
    `history`: wakes remembered.
    """

    idle: float | None = None
    max_pods: int = 0
    queue: int = 10_000
    backoff: float = 0.5
    backoff_limit: float = 30.0
    history: int = 50


class Fleet:
    """Hand out pods with `acquire`, take them back with `release`."""

    def __init__(self, spec: ServiceSpec, runtime: PodRuntime, limits: FleetLimits) -> None:
        self.spec = spec
        self.history: deque[Wake] = deque(maxlen=limits.history)
        self.pods: list[Pod] = []
        self._runtime = runtime
        self._limits = limits
        self._waiting: deque[asyncio.Future[Pod]] = deque()
        self._timers: dict[Pod, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._failures = 0
        self._closing = False

    @property
    def waiting(self) -> int:
        """Requests that wait for a pod."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """Requests that a pod is working on."""
        return sum(pod.in_flight for pod in self.pods)

    @property
    def serving(self) -> bool:
        """Whether a pod is ready: who still waits then waits only for its turn."""
        return any(pod.phase == "ready" for pod in self.pods)

    def start(self) -> None:
        """Start what min-scale and initial-scale ask for; without them nothing runs."""
        for _ in range(min(self._limit(), max(self.spec.scale.min_pods, self.spec.scale.initial_pods))):
            self._wake("initial scale")

    async def acquire(self, deadline: float) -> Pod:
        """A ready pod with room, counted as taken; release it.

        Raises TimeoutError at `deadline` (loop time), QueueFullError, or WakeError when waking keeps failing.
        """
        if self._closing:
            raise WakeError("the platform is stopping")
        pod = self._with_room() if not self._waiting else None
        if pod is not None:
            self._take(pod)
            self._scale_out()
            return pod
        if len(self._waiting) >= self._limits.queue:
            raise QueueFullError("pending request queue full")
        ticket: asyncio.Future[Pod] = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        self._scale_out()
        return await self._await_ticket(ticket, deadline)

    async def _await_ticket(self, ticket: asyncio.Future[Pod], deadline: float) -> Pod:
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(ticket)
        except (TimeoutError, asyncio.CancelledError):
            if ticket.done() and not ticket.exception():
                self.release(ticket.result())
            elif ticket in self._waiting:
                self._waiting.remove(ticket)
            raise

    def release(self, pod: Pod) -> None:
        """The request is over: serve the next one, or let the pod's idle time run."""
        pod.give()
        self._hand_out()
        if pod.in_flight == 0 and pod.phase == "ready":
            self._arm(pod)
        self._notify()

    def discard(self, pod: Pod) -> None:
        """A pod that refuses connections takes no more requests; it is stopped."""
        if pod.phase == "ready":
            self._retire(pod, "refused a connection")

    async def wait_asleep(self) -> None:
        """Return when no pod is left."""
        while self.pods:
            self._changed.clear()
            await self._changed.wait()

    async def close(self, grace: float) -> None:
        """Take no more, let requests in flight finish for `grace` seconds, stop every pod."""
        self._closing = True
        self._refuse_waiting(WakeError("the platform is stopping"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._drained()
        for pod in [pod for pod in self.pods if pod.phase == "ready"]:
            self._retire(pod, "platform stopped")
        for task in [task for task in self._tasks if task.get_name() == "wake"]:
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        for pod in list(self.pods):  # cancelled before its first step
            await self._stop(pod, "platform stopped")

    async def _drained(self) -> None:
        while self.in_flight:
            self._changed.clear()
            await self._changed.wait()

    def _limit(self) -> int:
        caps = [cap for cap in (self.spec.scale.max_pods, self._limits.max_pods) if cap]
        return max(min(caps, default=1_000), self.spec.scale.min_pods)

    def _with_room(self) -> Pod | None:
        """The fullest pod that still has room, so that the others can fall idle."""
        limit = self.spec.concurrency or math.inf
        ready = [pod for pod in self.pods if pod.phase == "ready" and pod.in_flight < limit]
        return max(ready, key=lambda pod: pod.in_flight, default=None)

    def _take(self, pod: Pod) -> None:
        pod.take()
        timer = self._timers.pop(pod, None)
        if timer is not None:
            timer.cancel()

    def _hand_out(self) -> None:
        while self._waiting and (pod := self._with_room()) is not None:
            ticket = self._waiting.popleft()
            if not ticket.done():
                self._take(pod)
                ticket.set_result(pod)

    def _scale_out(self) -> None:
        """Start pods until demand fits. One that is stopping still counts against max-scale."""
        if self._closing:
            return
        demand = math.ceil((self.in_flight + len(self._waiting)) / self.spec.pod_capacity)
        wanted = min(self._limit(), max(demand, self.spec.scale.min_pods))
        alive = sum(pod.phase in {"waking", "ready"} for pod in self.pods)
        for _ in range(min(wanted - alive, self._limit() - len(self.pods))):
            self._wake("request" if self._waiting or self.in_flight else "min-scale")

    def _wake(self, reason: str) -> None:
        pod = Pod(self.spec, self._runtime, reason)
        self.pods.append(pod)
        self.history.append(pod.wake)
        self._spawn(self._start(pod), "wake")

    async def _start(self, pod: Pod) -> None:
        if self._failures:
            wait = min(self._limits.backoff * 2.0 ** (self._failures - 1), self._limits.backoff_limit)
            await self._or_drop(pod, asyncio.sleep(wait))
        try:
            await self._or_drop(pod, pod.start())
        except WakeError as error:
            self._failed(pod, error)
            return
        self._failures = 0
        log.info("%s is awake", self.spec.name)
        self._spawn(self._watch(pod), "watch")
        self._arm(pod)
        self._hand_out()
        self._notify()

    async def _or_drop(self, pod: Pod, step: Coroutine[None, None, None]) -> None:
        """Run a step of waking; a cancelled one leaves no pod behind."""
        try:
            await step
        except asyncio.CancelledError:
            await pod.stop("cancelled", grace=0)
            self._drop(pod)
            raise

    def _failed(self, pod: Pod, error: WakeError) -> None:
        self._failures += 1
        log.warning("%s does not wake: %s (%s)", self.spec.name, error, self._runtime.logs / f"{self.spec.name}.log")
        if self._failures >= FAILURES_BEFORE_REFUSAL:
            self._refuse_waiting(error)
        self._drop(pod)

    def _refuse_waiting(self, error: WakeError) -> None:
        while self._waiting:
            ticket = self._waiting.popleft()
            if not ticket.done():
                ticket.set_exception(error)

    async def _watch(self, pod: Pod) -> None:
        """Notice a ready pod that ends by itself or fails its liveness probe."""
        unhealthy = asyncio.ensure_future(pod.unhealthy())
        await first_of(unhealthy, pod.exited)
        if pod.phase == "ready" and pod.exited.done():
            pod.ended()
            log.warning("%s %s", self.spec.name, pod.wake.end)
            self._drop(pod)
        elif pod.phase == "ready":
            self._retire(pod, "liveness probe failed")
        unhealthy.cancel()

    def _arm(self, pod: Pod) -> None:
        self._disarm(pod)
        scale = self.spec.scale
        alone = sum(other.phase == "ready" for other in self.pods) <= 1
        window = scale.window + (scale.retention if alone else 0.0)
        delay = window if self._limits.idle is None else self._limits.idle
        self._timers[pod] = asyncio.get_running_loop().call_later(delay, self._idle, pod)

    def _disarm(self, pod: Pod) -> None:
        timer = self._timers.pop(pod, None)
        if timer is not None:
            timer.cancel()

    def _idle(self, pod: Pod) -> None:
        self._timers.pop(pod, None)
        ready = sum(other.phase == "ready" for other in self.pods)
        if pod.phase == "ready" and pod.in_flight == 0 and ready > self.spec.scale.min_pods:
            log.info("%s falls asleep", self.spec.name)
            self._retire(pod, "idle")

    def _retire(self, pod: Pod, reason: str) -> None:
        """From this line on the pod gets no request; its process is ended in the background."""
        pod.phase = "stopping"
        self._spawn(self._stop(pod, reason), "stop")

    async def _stop(self, pod: Pod, reason: str) -> None:
        await pod.stop(reason)
        self._drop(pod)

    def _drop(self, pod: Pod) -> None:
        self._disarm(pod)
        if pod in self.pods:
            self.pods.remove(pod)
        self._scale_out()
        self._notify()

    def _notify(self) -> None:
        self._changed.set()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.ensure_future(work)
        task.set_name(name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
