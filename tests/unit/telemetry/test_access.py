"""gunicorn's own logs come out in our form: a real gunicorn, a real request with secrets in it (SEC-06)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONFIG = """
from shared.telemetry.logs import configure
configure("INFO", ["s3cret-of-the-tenant"])
logger_class = "shared.telemetry.access.GunicornLogger"
control_socket_disable = True
"""
APP = """
def app(environ, start_response):
    if environ["PATH_INFO"] == "/broken":
        raise RuntimeError("cannot fetch https://h/?X-Amz-Signature=0a1b2c3d s3cret-of-the-tenant")
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


@pytest.mark.slow
def test_sec_06_gunicorns_access_and_error_logs_hold_no_secret(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text(CONFIG)
    (tmp_path / "small.py").write_text(APP)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            str(tmp_path / "conf.py"),
            "--bind",
            f"fd://{listener.fileno()}",
            "small:app",
        ]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
        server = subprocess.Popen(
            command,
            pass_fds=[listener.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        for path in (
            "/v1/jobs?key=s3cret-of-the-tenant&X-Amz-Signature=0a1b2c3d",
            "/broken",
            "/health/readiness",
            "/a%0d%0afake",
        ):
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}{path}", headers={"Authorization": "Bearer s3cret-of-the-tenant"}
            )
            try:
                urllib.request.urlopen(request, timeout=20).close()
            except urllib.error.HTTPError as error:
                error.close()
                assert path == "/broken"
    server.send_signal(signal.SIGTERM)
    output, _ = server.communicate(timeout=20)
    lines = [json.loads(line) for line in output.splitlines()]
    accesses = [line for line in lines if line["logger"] == "gunicorn.access"]
    assert [line["message"] for line in accesses] == ["GET /v1/jobs 200", "GET /broken 500", "GET /[other] 200"]
    assert accesses[0]["status"] == 200
    assert any("RuntimeError" in line.get("exception", "") for line in lines)
    assert "s3cret" not in output
    assert "0a1b2c3d" not in output
