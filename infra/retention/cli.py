"""Retention: `python -m infra.retention run [--dry-run] [--tenant T] | prove JOB --tenant T`.

Works on the store (WAKESWAP_STORE_URL) by the tenants' policies (WAKESWAP_TENANTS, WAKESWAP_TENANTS_FOLDER). Jobs that
nothing moves are ended through the broker (K_SINK, WAKESWAP_EVENT_KEYS). What belongs to a tenant that is not known is
left as it is, and said.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from infra.retention import leftovers, views
from infra.retention.due import Terms
from infra.retention.ending import Endings
from infra.retention.folders import tenants
from infra.retention.proving import prove
from infra.retention.run import Report, Run
from shared.audit.marks import Marks
from shared.audit.trail import Trail
from shared.errors import BrokerUnavailableError, ConfigError, TenantNotReadyError, TransientError, WakeswapError
from shared.events import proof
from shared.events.event import Event
from shared.rejections import UnknownTenantError
from shared.settings import Settings
from shared.storage.open import open_store
from shared.storage.protocol import ObjectStore
from shared.telemetry import logs
from shared.tenancy import directory
from shared.tenancy.directory import Directory

DONE, LEFT, WRONG = 0, 1, 2


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Exit status of `run`: 0 done, 1 something has to wait for the next run; of `prove`: 0 nothing is left, 1 it is or
    there was no such job; 2 wrong arguments or settings.
    """
    parsed = _parser().parse_args(arguments)
    try:
        settings = Settings.from_environment(environ)
        logs.configure(settings.serving.log_level, settings.secrets())
        command: Callable[[argparse.Namespace, Office], int] = parsed.command
        status = command(parsed, Office.of(settings))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nor may the flush at the end of the process complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except WakeswapError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return WRONG if isinstance(error, ConfigError) else LEFT
    return status


@dataclass(frozen=True)
class Office:
    """What the commands work with."""

    settings: Settings
    store: ObjectStore
    trail: Trail
    tenants: Directory

    @classmethod
    def of(cls, settings: Settings) -> Office:
        store, texts = open_store(settings.store.url), settings.tenants
        tenants = directory.load(texts.tenants, "", "", texts.folder)
        return cls(settings, store, Trail(store, Marks(settings.privacy.audit_key)), tenants)

    @property
    def hours(self) -> int:
        return self.settings.privacy.abandoned_hours

    def endings(self) -> Endings:
        events = proof.read(self.settings.serving.event_keys)
        return Endings(self.store, self.trail, events, self._publish, self.hours)

    def end(self, tenant: str, job: str) -> None:
        if not self.settings.serving.sink:  # before anything is written: a job that ends is told of
            raise BrokerUnavailableError("A job that nothing moves is left: K_SINK names no broker.")
        self.endings().end(tenant, job)

    def _publish(self, event: Event) -> None:
        from shared.serving.emitter import Emitter  # urllib3 and tenacity, which most runs do not need

        Emitter(self.settings.serving.sink, connections=1).publish(event)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.retention", description="Delete what is due, and prove it.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="delete what is due")
    run.add_argument("--tenant", default="", help="only of this tenant")
    run.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    run.set_defaults(command=_run)
    shown = commands.add_parser("prove", help="what was there of a job, what was deleted when, and what is left")
    shown.add_argument("job")
    shown.add_argument("--tenant", required=True)
    shown.set_defaults(command=_prove)
    for command in (run, shown):
        command.add_argument("--format", choices=("table", "json"), default="table")
    return parser


def _run(arguments: argparse.Namespace, office: Office) -> int:
    names = [arguments.tenant] if arguments.tenant else tenants(office.store)
    reports = [_of_tenant(name, arguments.dry_run, office) for name in names]
    if not arguments.tenant:
        reports.append(leftovers.sweep(office.store, office.trail, office.hours, time.time(), dry=arguments.dry_run))
    views.show_reports(reports, arguments.format, dry=arguments.dry_run)
    return LEFT if any(report.faults for report in reports) else DONE


def _of_tenant(name: str, dry: bool, office: Office) -> Report:
    try:
        policy = office.tenants.get(name).policy
    except (UnknownTenantError, TenantNotReadyError) as error:
        return Report(name, faults=[f"left as it is: {error.detail}"])
    terms = Terms.of(policy, office.hours)
    run = Run(office.store, office.trail, name, terms, time.time(), lambda job: office.end(name, job), dry)
    try:
        if not dry and office.settings.serving.sink:
            office.endings().resume(name)
        return run.all()
    except TransientError as error:  # the next run goes on from there; other tenants need not wait for it
        return Report(name, faults=[error.detail])


def _prove(arguments: argparse.Namespace, office: Office) -> int:
    found = prove(office.store, office.trail, arguments.tenant, arguments.job)
    views.show_proof(found, arguments.format)
    return DONE if found.holds else LEFT
