"""One pod of a Job: init containers one after another, then the container, to its end. Knows processes, no events."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from infra.local.serving.containers import RESERVED_VARIABLES
from infra.local.serving.environment import container_variables, expand, fill_volumes, mount_folders, rewrite
from infra.local.serving.ledger import TOKEN_VARIABLE
from infra.local.serving.model import Container
from infra.local.serving.pods import PodRuntime
from infra.local.serving.process import Process, spawn
from infra.local.sinks.spec import EVENT_VOLUME, JobSink

EVENT_PATH, EVENT_FILE = "K_EVENT_PATH", "event"
_NOT_INHERITED = RESERVED_VARIABLES | {"K_SINK", "K_SERVICE", "GUNICORN_CMD_ARGS"}


class JobPod:
    """`sink`: K_SINK of the Job, if a SinkBinding gives it one."""

    def __init__(self, spec: JobSink, runtime: PodRuntime, event: bytes, sink: str | None) -> None:
        self._spec, self._runtime, self._event = spec, runtime, event
        self._record = runtime.ledger.name(spec.name)
        self._fixed = {} if sink is None else {"K_SINK": sink}
        self._process: Process | None = None

    async def run(self) -> int:
        """The exit code of the first container that fails, or 0. Raises MissingReferenceError, SpawnError, OSError."""
        try:
            self._prepare()
            code = 0
            for container in (*self._spec.init, self._spec.container):
                self._process = self._launch(container)
                code = await asyncio.shield(self._process.exited)
                if code != 0:
                    break
            return code
        finally:
            await self._end()

    def _prepare(self) -> None:
        self._runtime.ledger.open(self._record)
        fill_volumes(self._spec.volumes, self._runtime.configs, self._folder)
        mounted = self._folder / EVENT_VOLUME
        mounted.mkdir(parents=True, mode=0o700)
        (mounted / EVENT_FILE).write_bytes(self._event)
        self._fixed |= {EVENT_PATH: str(mounted)}

    def _launch(self, container: Container) -> Process:
        runtime, folders = self._runtime, mount_folders(container, self._folder)
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        variables = container_variables(container, runtime.configs, self._fixed, runtime.overrides)
        env = {**_base_environment(), **{name: rewrite(value, folders) for name, value in variables.items()}}
        env |= {**runtime.overrides, TOKEN_VARIABLE: self._record.token}
        command = [rewrite(expand(part, variables), folders) for part in (*container.command, *container.args)]
        cwd = container.working_dir and rewrite(container.working_dir, folders)
        process = spawn(command, env, cwd, runtime.logs / f"{self._spec.name}.log", ())
        self._record = runtime.ledger.add(self._record, process.pid)
        return process

    async def _end(self) -> None:
        """SIGTERM and the grace of the pod for what still runs, when the run was broken off; then tidy up."""
        if self._process is not None and not self._process.exited.done():
            await self._process.stop(min(self._spec.grace, self._runtime.grace_limit))
        self._runtime.ledger.close(self._record)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return self._runtime.volumes / self._record.token


def _base_environment() -> Mapping[str, str]:
    """This process's own, with the folder of its interpreter first on PATH."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    path = os.environ.get("PATH", os.defpath)
    return {**inherited, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}"}
