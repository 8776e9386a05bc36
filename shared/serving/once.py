"""One event in one process, for work longer than a Service may take: what a Job runs that JobSink makes of an event.

    python -m shared.serving.once <stage>

The event lies in the file that JobSink mounts, and meets the Receiver that a Service has, with its tenants, leases,
records and outcomes; what follows from it is published through K_SINK. Exit codes: 0 done, AGAIN what may pass (the Job
starts another pod), NEVER what never will. JobSink has taken the event from the broker long ago, so that no dead letter
will tell of it: this process keeps the event for replay and ends the job itself. Knows the harness's own parts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from shared.errors import ConfigError, WakeswapError
from shared.events import codec, contract
from shared.events.event import Event
from shared.events.payloads import Failure
from shared.jobs import letters
from shared.serving.answers import SENT_AGAIN, Reply
from shared.serving.app import alone
from shared.serving.receive import Receiver, Services
from shared.settings import Settings
from shared.telemetry import logs
from shared.vision.threads import quiet

AGAIN, NEVER = 75, 65
"""EX_TEMPFAIL and EX_DATAERR of sysexits.h."""
EVENT = "event"
"""JobSink's name of the file in the folder that it mounts."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="shared.serving.once", description=__doc__.partition("\n")[0])
    parser.add_argument("stage")
    settings = Settings.from_environment(os.environ)
    logs.configure(settings.serving.log_level, settings.secrets())
    quiet(os.environ)
    return run(parser.parse_args().stage, os.environ)


def run(stage: str, environ: Mapping[str, str], package: str = "functions") -> int:
    """The exit code. Raises ConfigError, and what the stage's setup does."""
    settings = Settings.from_environment(environ)
    if not settings.serving.sink:
        raise ConfigError("A Job has nobody to answer to, and needs a sink.", context={"field": "K_SINK"})
    services = alone(stage, package, settings)
    handle = services.stage.handle
    if handle is None:
        raise ConfigError(f"The stage {stage} takes raw events, which JobSink does not bring.")
    _stop_on_sigterm(services)
    body = _event(settings.serving.event).read_bytes()
    headers = {"content-type": codec.STRUCTURED}
    reply = Receiver(services, handle)(headers, body)
    if reply.status < 400:
        return 0
    if reply.status >= 500 or reply.status in SENT_AGAIN:
        return AGAIN
    _give_up(services, codec.decode(headers, body, limit=services.max_bytes), reply)
    return NEVER


def _event(place: Path) -> Path:
    return place / EVENT if place.is_dir() else place


def _give_up(services: Services, event: Event, reply: Reply) -> None:
    """What the broker's dead letter does for a Service; of an event without a right proof nothing is said."""
    letters.keep(services.store, event)
    if not services.proof.proves(event) or services.emitter is None:
        return
    code = str(json.loads(reply.body).get("code", "undeliverable"))
    failure = Failure(event.job, services.stage.name, code, letters.DETAIL, event.id)
    payload = services.outcomes.settle(event.tenant, failure, event.digest)
    if payload is not None:
        services.emitter.publish(services.proof.sign(contract.reply(services.stage.name, event, payload)))


def _stop_on_sigterm(services: Services) -> None:
    """A node that is lost or given to others: work as long as this is not finished in any grace period."""

    def handle(_: int, __: FrameType | None) -> None:
        services.lifecycle.stop(at_once=True)

    signal.signal(signal.SIGTERM, handle)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WakeswapError as error:
        sys.exit(f"{error.code}: {error.detail}")
