"""JobSink: takes an event, answers 202 once it is on disk, and runs one Job for it, however often it comes.

A Job is a file until it has ended: a platform that was killed goes on with it, and the try that it cut off does not
count. Knows HTTP, files and the pods.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from aiohttp import web

from infra.local.eventing.cloudevent import CloudEvent, InvalidEventError, read_event, structured
from infra.local.eventing.ingress import read_body
from infra.local.serving.environment import MissingReferenceError
from infra.local.serving.pods import PodRuntime
from infra.local.serving.process import SpawnError
from infra.local.sinks.pods import JobPod
from infra.local.sinks.spec import JobSink
from infra.local.state import write_private

PAUSE_SECONDS, LONGEST_PAUSE = 10.0, 360.0
"""Before the second pod of a Job; doubled for each further one up to the longest: Kubernetes' own."""
KEPT_SECONDS = 86400.0
"""How long an ended Job keeps repeats of its event out."""
WAITING, RUNNING, DONE, FAILED = STATES = ("waiting", "running", "done", "failed")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    sink: str
    event: str
    """Structured mode."""
    created: float
    state: str = WAITING
    failures: int = 0


class JobSinks:
    """`at_once`: Jobs of one sink that run together; `sink_of`: K_SINK of a sink's Jobs."""

    def __init__(
        self,
        sinks: Iterable[JobSink],
        runtime: PodRuntime,
        folder: Path,
        sink_of: Callable[[JobSink], str | None],
        *,
        at_once: int = 4,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._sinks = {f"{sink.namespace}/{sink.name}": sink for sink in sinks}
        self._runtime, self._folder, self._sink_of, self._pause = runtime, folder, sink_of, pause
        self._slots = {key: asyncio.Semaphore(at_once) for key in self._sinks}
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/jobsinks/{namespace}/{name}", self._post)]

    def start(self) -> None:
        """Go on with what the last platform left."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                job = Job(**json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError):
                log.warning("%s is damaged, left alone", path)
                continue
            if job.state in (DONE, FAILED) and time.time() - job.created > KEPT_SECONDS:
                path.unlink(missing_ok=True)
            elif job.sink in self._sinks:
                self._begin(path.stem, replace(job, state=job.state if job.state in (DONE, FAILED) else WAITING))

    async def stop(self) -> None:
        """End the pods; their Jobs go on with the next platform."""
        tasks = [task for task in self._tasks.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def idle(self) -> bool:
        return all(job.state in (DONE, FAILED) for job in self._jobs.values())

    def status(self) -> dict[str, dict[str, int]]:
        """Jobs of each sink by state."""
        found = {key.partition("/")[2]: Counter(dict.fromkeys(STATES, 0)) for key in self._sinks}
        for job in self._jobs.values():
            found[job.sink.partition("/")[2]][job.state] += 1
        return {name: dict(counts) for name, counts in found.items()}

    async def _post(self, request: web.Request) -> web.Response:
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        if key not in self._sinks:
            return web.json_response({"status": 404, "detail": f"there is no JobSink {key}"}, status=404)
        try:
            event = read_event(request.headers.items(), await read_body(request))
        except InvalidEventError as error:
            return web.json_response({"status": error.status, "detail": str(error)}, status=error.status)
        name = _name(key, event)
        if name not in self._jobs:
            job = Job(key, structured(event)[1].decode(), time.time())
            try:
                self._write(name, job)
            except OSError as error:
                return web.json_response({"status": 503, "detail": f"no room: {error}"}, status=503)
            self._begin(name, job)
        return web.Response(status=202, headers={"Location": f"/namespaces/{key}/jobs/{name}"})

    def _begin(self, name: str, job: Job) -> None:
        self._jobs[name] = job
        if job.state == WAITING:
            self._tasks[name] = asyncio.create_task(self._run(name), name=f"job {name}")

    async def _run(self, name: str) -> None:
        sink = self._sinks[self._jobs[name].sink]
        async with self._slots[self._jobs[name].sink]:
            try:
                async with asyncio.timeout(sink.deadline):
                    state = await self._tries(name, sink)
            except TimeoutError:
                log.warning("%s: a Job was not done within %g s", sink.name, sink.deadline or 0)
                state = FAILED
        self._note(name, replace(self._jobs[name], state=state))
        self._tasks.pop(name, None)

    async def _tries(self, name: str, sink: JobSink) -> str:
        while True:
            self._jobs[name] = replace(self._jobs[name], state=RUNNING)
            code = await self._pod(name, sink)
            if code == 0:
                return DONE
            job = replace(self._jobs[name], failures=self._jobs[name].failures + 1, state=WAITING)
            self._note(name, job)
            if code in sink.fails or job.failures > sink.backoff_limit:
                log.error("%s: a Job has failed, its last pod with %d", sink.name, code)
                return FAILED
            await asyncio.sleep(min(self._pause * 2 ** (job.failures - 1), LONGEST_PAUSE))

    async def _pod(self, name: str, sink: JobSink) -> int:
        pod = JobPod(sink, self._runtime, self._jobs[name].event.encode(), self._sink_of(sink))
        try:
            return await pod.run()
        except (MissingReferenceError, SpawnError, OSError) as error:
            log.warning("%s: a pod could not be started: %s", sink.name, error)
            return 1

    def _note(self, name: str, job: Job) -> None:
        self._jobs[name] = job
        try:
            self._write(name, job)
        except OSError as error:  # then a restart repeats what is done already, which its own records keep harmless
            log.warning("cannot note a Job: %s", error)

    def _write(self, name: str, job: Job) -> None:
        write_private(self._folder / f"{name}.json", json.dumps(asdict(job)))


def _name(sink: str, event: CloudEvent) -> str:
    """One Job for an event, whoever delivers it and how often."""
    identity = f"{sink}\n{event.source}\n{event.id}"
    return f"{sink.partition('/')[2]}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
