"""Jobs that wait for a person: `python -m infra.review list | show JOB | approve JOB | reject JOB`.

Works on the store (WAKESWAP_STORE_URL), the broker's ingress (K_SINK) and the keys that events are signed with
(WAKESWAP_EVENT_KEYS). The pictures are not shown: `show` names their objects.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from shared import records
from shared.audit.marks import Marks
from shared.audit.trail import Trail
from shared.errors import BrokerUnavailableError, ConfigError, JsonValue, WakeswapError
from shared.events import proof
from shared.events.event import Event
from shared.jobs import decisions, holds, views
from shared.jobs.holds import APPROVED, REJECTED, Hold
from shared.serving.reviewing import Reviews
from shared.settings import Settings
from shared.storage.open import open_store

Command = Callable[[argparse.Namespace, Reviews], JsonValue]


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Exit status: 0 done, 1 it could not be done (no such job, decided otherwise, no broker), 2 wrong settings."""
    parsed = _parser().parse_args(arguments)
    try:
        command: Command = parsed.command
        print(json.dumps(command(parsed, _reviews(Settings.from_environment(environ))), indent=2))
    except WakeswapError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.review", description="Jobs that wait for a person.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("list", help="every job that waits, the longest wait first").set_defaults(command=_list)
    for name, run, text in (
        ("show", _show, "what was found in a job's pictures, and where they lie"),
        ("approve", _approve, "let the job go on"),
        ("reject", _reject, "end the job"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("job")
        command.add_argument("--tenant", default="", help="where two tenants have a job of this id")
        command.set_defaults(command=run)
        if run is not _show:
            command.add_argument("--by", default=getpass.getuser(), help="who decides (default: %(default)s)")
            command.add_argument("--note", default="", help="why; kept with the verdict")
    return parser


def _reviews(settings: Settings) -> Reviews:
    sink = settings.serving.sink

    def publish(event: Event) -> None:
        if not sink:
            raise BrokerUnavailableError("K_SINK names no broker.")
        from shared.serving.emitter import Emitter  # urllib3 and tenacity, which looking does not need

        Emitter(sink, connections=1).publish(event)

    store = open_store(settings.store.url)
    trail = Trail(store, Marks(settings.privacy.audit_key))
    return Reviews(store, trail, proof.read(settings.serving.event_keys), publish, time.time)


def _list(_: argparse.Namespace, reviews: Reviews) -> JsonValue:
    return [_facts(hold) for hold in holds.pending(reviews.store)]


def _show(arguments: argparse.Namespace, reviews: Reviews) -> JsonValue:
    return [_details(hold, reviews) for hold in reviews.find(arguments.job, arguments.tenant)]


def _approve(arguments: argparse.Namespace, reviews: Reviews) -> JsonValue:
    return _decide(arguments, reviews, APPROVED)


def _reject(arguments: argparse.Namespace, reviews: Reviews) -> JsonValue:
    return _decide(arguments, reviews, REJECTED)


def _decide(arguments: argparse.Namespace, reviews: Reviews, verdict: str) -> JsonValue:
    found = reviews.find(arguments.job, arguments.tenant)
    return [records.write(reviews.decide(hold, verdict, arguments.by, arguments.note)) for hold in found]


def _facts(hold: Hold) -> dict[str, JsonValue]:
    return {"tenant": hold.tenant, "job": hold.job, "stage": hold.stage, "checks": [*hold.checks], "since": hold.since}


def _details(hold: Hold, reviews: Reviews) -> JsonValue:
    view = views.view(reviews.store, hold.tenant, hold.job)
    made = decisions.of_stage(reviews.store, hold.tenant, hold.job, hold.stage)
    data = hold.original().data
    facts: dict[str, JsonValue] = {"status": view.status, "decisions": [records.write(one) for one in made]}
    return _facts(hold) | facts | {"data": data if isinstance(data, dict) else None}
