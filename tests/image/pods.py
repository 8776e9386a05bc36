"""Starts a Service of the manifests from the built image: its command, environment, mounts and securityContext.

Volumes are folders, as a kubelet makes them; what the manifests mount nowhere cannot be written. Secrets' values and
the tenants are the test's. The first init container runs to its end before the stage starts.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.components import BARE, rendered
from tests.image.building import BASE_PYTHON, Made
from tests.image.pod import Pod
from tests.services.process import StageProcess

POD = Path(__file__).with_name("pod.py")
UNSHARED = ("unshare", "--mount", "--propagation", "private", str(BASE_PYTHON), str(POD))


@dataclass(frozen=True)
class Cluster:
    image: Made
    work: Path
    models: Path
    """What every emptyDir called `models` is: filled once, and not for each stage anew."""
    secrets: Mapping[str, str]
    environ: Mapping[str, str]
    """What an overlay and the cluster add: the tenants, the store's credentials."""
    broker: str
    """Where a SinkBinding points to."""

    @contextmanager
    def running(self, name: str) -> Iterator[Started]:
        """A started Service, its init container done."""
        spec = _service(name)["spec"]["template"]["spec"]
        for container in spec.get("initContainers", ()):
            done = subprocess.run(self._command(spec, container, {}), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.set_inheritable(True)
            bound = {"GUNICORN_CMD_ARGS": f"--bind fd://{listener.fileno()}", "K_SERVICE": name}
            if _found("SinkBinding", name):
                bound["K_SINK"] = self.broker
            process = Started(name, self.work, listener, self._command(spec, spec["containers"][0], bound))
        try:
            yield process
        finally:
            if process.process.poll() is None:
                process.kill()

    def run(self, code: str) -> str:
        """A program for Python in the image, with no volumes at all."""
        command = self._command({}, {"command": ["python", "-c", code]}, {})
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _command(self, spec: dict[str, Any], container: dict[str, Any], more: Mapping[str, str]) -> list[str]:
        context = container.get("securityContext", {"readOnlyRootFilesystem": True, "runAsNonRoot": True})
        assert (context["readOnlyRootFilesystem"], context["runAsNonRoot"]) == (True, True)
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        mounts = {}
        for mount in container.get("volumeMounts", ()):
            mounts[mount["mountPath"]] = self._volume(volumes[mount["name"]])
        for path in ("/proc", "/dev", *mounts):  # as a container runtime does, before the root is read-only
            (self.image.folder / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        pod = Pod(
            root=str(self.image.folder),
            user=int(self.image.user.partition(":")[0]),
            workdir=self.image.workdir,
            mounts=mounts,
            environ={**self.image.environ, "HOME": "/nonexistent", **self._environ(container), **more},
            command=container["command"],
        )
        return [*UNSHARED, json.dumps(pod)]

    def _volume(self, volume: dict[str, Any]) -> tuple[str, bool]:
        folder = self.models if volume["name"] == "models" else self.work / volume["name"]
        folder.mkdir(exist_ok=True)
        if "emptyDir" in volume:
            folder.chmod(0o777)
        return str(folder), "emptyDir" not in volume

    def _environ(self, container: dict[str, Any]) -> dict[str, str]:
        environ: dict[str, str] = {}
        for source in container.get("envFrom", ()):
            if "configMapRef" in source:
                environ |= _config(source["configMapRef"]["name"])
        environ |= self.environ
        for item in container.get("env", ()):
            if "value" in item:
                environ[item["name"]] = item["value"]
            elif not item["valueFrom"]["secretKeyRef"].get("optional"):
                environ[item["name"]] = self.secrets[item["name"]]
        return environ


class Started(StageProcess):
    """A stage in its pod; what it answers is asked as of any other."""

    def __init__(self, name: str, work: Path, listener: socket.socket, command: list[str]) -> None:
        self.port = listener.getsockname()[1]
        self.log_path = work / f"{name}.log"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, pass_fds=[listener.fileno()], stdout=log, stderr=log, start_new_session=True
            )

    def wait_ready(self, seconds: float = 120.0) -> None:
        """The socket is the process's alone: who ends early is told at once, with what was logged."""
        ends = time.monotonic() + seconds
        with suppress(ConnectionError):
            while self.readiness().status != 200:
                assert time.monotonic() < ends, self.log()
                time.sleep(0.1)
            return
        pytest.fail(self.log())

    def status(self) -> dict[str, str]:
        """What the kernel says of the process: `Uid`, `CapEff`, ..."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def services() -> list[str]:
    return sorted(found["metadata"]["name"] for found in rendered(BARE) if _is_serving(found))


def _service(name: str) -> dict[str, Any]:
    (service,) = _found("Service", name)
    return service


def _config(name: str) -> dict[str, str]:
    (config,) = _found("ConfigMap", name)
    return dict(config["data"])


def _found(kind: str, name: str) -> list[dict[str, Any]]:
    return [found for found in rendered(BARE) if (found["kind"], found["metadata"]["name"]) == (kind, name)]


def _is_serving(document: dict[str, Any]) -> bool:
    return bool(document["kind"] == "Service" and document["apiVersion"].startswith("serving.knative.dev/"))
