"""The whole product on this machine, for tests: the real manifests, another store folder, real kills."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import yaml

from shared.events import proof
from shared.events.event import Event
from tests.contract.test_topology import render

ROOT = Path(__file__).parents[2]
Change = Callable[[list[dict[str, Any]]], None]


class Machine:
    """`up()`, `kill()` (-9 of the platform alone), `down()`; state and objects live below `folder`."""

    def __init__(
        self,
        folder: Path,
        *changes: Change,
        tenants: Mapping[str, Any] | None = None,
        models: Path = ROOT / ".wakeswap/models",
        idle: float = 5,
        docs: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """`docs`: other manifests than the overlay's own."""
        self.state, self.objects = folder / "state", folder / "state/objects"
        self.inbox = self.objects / "tenants/demo/inbox"
        self.inbox.mkdir(parents=True)
        self._idle = idle
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "platform.log"
        changed: list[dict[str, Any]] = json.loads(json.dumps(docs or render("local")))
        for doc in changed:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
                doc["data"]["WAKESWAP_MODEL_CACHE"] = str(models)
                doc["data"]["WAKESWAP_TENANTS"] = json.dumps(tenants or {"demo": {}})
        for change in changes:
            change(changed)
        self.manifests = folder / "manifests.yaml"
        self.manifests.write_text(yaml.safe_dump_all(changed))

    def up(self) -> None:
        command = [sys.executable, "-m", "infra.local", "up", "--overlay", str(self.manifests),
                   "--state", str(self.state), "--idle", str(self._idle), "--port", "intake=0"]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        self.until(lambda: (self.state / "platform.json").exists() and self.facts()["pid"] == self.pid, 30)

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    def down(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.terminate()
            assert self._process.wait(timeout=60) == 0, self._log.read_text()[-3000:]

    def facts(self) -> dict[str, Any]:
        with suppress(FileNotFoundError, ValueError):
            facts: dict[str, Any] = json.loads((self.state / "platform.json").read_text())
            return facts
        return {"pid": 0}

    def key(self) -> str:
        return str(self.facts()["generated"]["wakeswap-intake"]["WAKESWAP_API_KEYS"]).removeprefix("demo=")

    def signed(self, event: Event) -> Event:
        """As this installation's own stages sign it."""
        return proof.read(str(self.facts()["generated"]["wakeswap-events"]["WAKESWAP_EVENT_KEYS"])).sign(event)

    def admin(self, page: str) -> Any:
        facts = self.facts()
        request = urllib.request.Request(
            facts["platform"] + page, headers={"Authorization": f"Bearer {facts['token']}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def processes(self) -> list[psutil.Process]:
        """Every process of a function, gunicorn masters and workers."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def kill_one(self, random_: random.Random) -> bool:
        victims = self.processes()
        if victims:
            with suppress(psutil.NoSuchProcess):
                random_.choice(victims).kill()
                return True
        return False

    def outcomes(self) -> dict[str, dict[str, Any]]:
        """How each job ended, by id."""
        found = {}
        for path in (self.objects / "tenants/demo/jobs").glob("*/outcome.json"):
            found[path.parent.name] = json.loads(path.read_text())
        return found

    def asleep(self) -> bool:
        status = self.admin("/status")
        return bool(status["idle"]) and all(service["pods"] == 0 for service in status["services"].values())

    def until(self, done: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, self._log.read_text()[-3000:]
            time.sleep(0.05)


class Receiver:
    """A webhook endpoint on loopback that keeps what it was told."""

    def __init__(self) -> None:
        told = self.told = []  # type: list[tuple[str, dict[str, Any]]]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told.append((self.headers["webhook-id"], json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def tenants(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._server.server_port}/hook"
        return {"demo": {"webhook": {"url": url, "allow_local": True}}}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
