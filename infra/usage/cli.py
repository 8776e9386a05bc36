"""The command line: `python -m infra.usage report --tenant T --month YYYY-MM [--format table|csv|json] [--prices F]`.

Reads the usage records of the store (WAKESWAP_STORE_URL, or --store). Changes nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence

from infra.usage import reading, views
from infra.usage.report import Report, repriced
from shared.errors import ConfigError, WakeswapError
from shared.settings import Settings
from shared.storage.open import open_store
from shared.usage import pricing


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Exit status: 0 done, 1 a record is damaged or out of place and left out, 2 wrong arguments or settings."""
    parsed = _parser().parse_args(arguments)
    try:
        url = parsed.store or Settings.from_environment(environ).store.url
        found = reading.month(open_store(url), parsed.tenant, parsed.month)
        records = found.records
        if parsed.prices:
            prices = pricing.read(parsed.prices)
            records = tuple(repriced(one, prices) for one in records)
        sys.stdout.write(views.FORMATS[parsed.format](Report(parsed.tenant, parsed.month, records)))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nor may the flush at the end of the process complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except WakeswapError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    for key in found.damaged:
        print(f"not in the report, cannot be read: {key}", file=sys.stderr)
    for key in found.foreign:
        print(f"not in the report, is not this tenant's, this month's or its job's only record: {key}", file=sys.stderr)
    return int(bool(found.damaged or found.foreign))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.usage", description="What tenants used, and what it costs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "a tenant's jobs that were accepted in a month"
    report = commands.add_parser("report", help=text, description=text)
    report.add_argument("--tenant", required=True)
    report.add_argument("--month", required=True, type=_month, metavar="YYYY-MM", help="UTC")
    report.add_argument("--format", choices=tuple(views.FORMATS), default="table", help="default: %(default)s")
    report.add_argument("--prices", default="", metavar="FILE", help="what it would cost by another price file")
    report.add_argument("--store", default="", metavar="URL", help="default: WAKESWAP_STORE_URL")
    return parser


def _month(text: str) -> str:
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", text):
        raise argparse.ArgumentTypeError("a month is YYYY-MM")
    return text
