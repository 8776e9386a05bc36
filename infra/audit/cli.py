"""Who decided what: `python -m infra.audit show --tenant T --day D | mark FILE`.

Works on the store (WAKESWAP_STORE_URL) and, for marks, on WAKESWAP_AUDIT_KEY. Only reads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shared import records
from shared.audit.lines import Entry
from shared.audit.marks import Marks
from shared.audit.trail import NOBODY, Trail
from shared.errors import ConfigError, WakeswapError
from shared.settings import Settings
from shared.storage import keys
from shared.storage.open import open_store

COLUMNS = ("at", "job", "what", "decision", "code", "by", "facts")


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Exit status: 0 done, 1 the store or the file cannot be read, 2 wrong arguments or settings."""
    parsed = _parser().parse_args(arguments)
    try:
        command: Callable[[argparse.Namespace, Settings], None] = parsed.command
        command(parsed, Settings.from_environment(environ))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nor may the flush at the end of the process complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"{parsed.file}: {error.strerror}", file=sys.stderr)
        return 1
    except WakeswapError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.audit", description="Who decided what, and why.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="the decisions of a day, or about a job")
    show.add_argument("--tenant", required=True, help=f"{NOBODY}: requests that came with no valid key or token")
    show.add_argument("--day", type=_day, help="YYYY-MM-DD, UTC (default: every day)")
    show.add_argument("--job", default="", help="only about this job")
    show.add_argument("--format", choices=("table", "json"), default="table", help="json: one object a line")
    show.set_defaults(command=_show)
    mark = commands.add_parser("mark", help="what the audit calls this picture, to look for it there")
    mark.add_argument("file", type=Path)
    mark.set_defaults(command=_mark)
    return parser


def _day(text: str) -> str:
    if not keys.is_day(text):
        raise argparse.ArgumentTypeError("a day is YYYY-MM-DD")
    return text


def _show(arguments: argparse.Namespace, settings: Settings) -> None:
    trail = Trail(open_store(settings.store.url))
    days = [arguments.day] if arguments.day else trail.days()
    entries = [one for day in days for one in trail.of_day(arguments.tenant, day, arguments.job)]
    if arguments.format == "json":
        for entry in entries:
            print(records.dumps(records.write(entry)).decode())
        return
    print("\t".join(COLUMNS))
    for entry in entries:
        print("\t".join(_cells(entry)))


def _cells(entry: Entry) -> list[str]:
    values = [getattr(entry, column) for column in COLUMNS]
    return [json.dumps(value, sort_keys=True) if isinstance(value, dict) else value or "-" for value in values]


def _mark(arguments: argparse.Namespace, settings: Settings) -> None:
    marks = Marks(settings.privacy.audit_key)
    if not marks:
        raise ConfigError("Pictures are marked only under WAKESWAP_AUDIT_KEY.")
    print(marks.picture(hashlib.sha256(arguments.file.read_bytes()).hexdigest()))
