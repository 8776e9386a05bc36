"""What probes and wake-ahead call: answered from memory, at once, whatever the process is doing.

Knows flask and the lifecycle.
"""

from __future__ import annotations

from flask import Flask, Response

from shared.serving.answers import NOTHING, Reply
from shared.serving.lifecycle import Lifecycle
from shared.serving.web import respond
from shared.telemetry.metrics import CONTENT_TYPE, PrometheusMetrics

OK = Reply(200, (("Content-Type", "text/plain; charset=utf-8"),), b"ok\n")

ENDPOINTS = frozenset({"liveness", "readiness", "wake", "scrape"})
"""What needs no slot and no loaded stage."""


def add_routes(app: Flask, lifecycle: Lifecycle, metrics: PrometheusMetrics) -> None:
    def liveness() -> Response:
        """The process runs. Loading and stopping are no reasons to kill it."""
        return respond(OK)

    def readiness() -> Response:
        """Everything is loaded and warm, and nothing says stop; else 503 and a problem that says why."""
        lifecycle.check()
        return respond(OK)

    def wake() -> Response:
        """Wake-ahead: that this was delivered means that the process has been started, which was its purpose."""
        return respond(NOTHING)

    def scrape() -> Response:
        return respond(Reply(200, (("Content-Type", CONTENT_TYPE),), metrics.render()))

    app.add_url_rule("/health/liveness", view_func=liveness)
    app.add_url_rule("/health/readiness", view_func=readiness)
    app.add_url_rule("/metrics", view_func=scrape)
    app.add_url_rule("/wake", view_func=wake, methods=["POST"])
