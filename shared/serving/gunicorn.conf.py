# ruff: noqa: N999 - the name that gunicorn looks for
"""gunicorn for one stage: one worker process, a thread for each slot and some to spare, limits from the settings.

The master reads this before it forks. It imports nothing of a stage: the worker does that, and loads the models on a
background thread while it answers probes. Options given on the command line or in GUNICORN_CMD_ARGS win.
"""

import gc
import os
from typing import Any

from shared.serving import lifecycle
from shared.settings import Settings
from shared.telemetry import logs
from shared.vision.threads import quiet

_settings = Settings.from_environment(os.environ)
_serving = _settings.serving
logs.configure(_serving.log_level, _settings.secrets())

quiet(os.environ)  # inherited by the worker before it imports numpy

SPARE_THREADS = 8
"""For probes, /wake and refusals while every slot works, and for connections that say nothing yet."""

bind = f"0.0.0.0:{_serving.port}"
worker_class = "shared.serving.worker.Worker"  # gthread, with problem documents for what it refuses itself
workers = 1
threads = _serving.concurrency + SPARE_THREADS
preload_app = False
control_socket_disable = True

# The heartbeat comes from the worker's main thread, which never works on events: nothing is killed for being slow.
timeout = 0
graceful_timeout = _serving.timeout_seconds
# Longer than the idle time of the proxies in front, so that they close first and no request meets a closed socket.
keepalive = 120

header_map = "drop"
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}

logger_class = "shared.telemetry.access.GunicornLogger"


lifecycle.fork_ahead()


def post_fork(arbiter: Any, worker: Any) -> None:  # noqa: ARG001 - gunicorn's names
    gc.disable()  # until it is ready (app): imports make no garbage, and looking for it took 0.04 s of each wake


def post_worker_init(worker: Any) -> None:
    lifecycle.stop_on_sigterm(worker.wsgi.extensions[lifecycle.EXTENSION])
    worker.wsgi.extensions[lifecycle.BEGIN]()


def worker_int(worker: Any) -> None:
    """SIGINT or SIGQUIT: end now; what is in hand is handed back in the moment that gunicorn leaves."""
    worker.wsgi.extensions[lifecycle.EXTENSION].stop(at_once=True)
