"""A report as text: a table for people, a line a job for spreadsheets, one object for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from decimal import Decimal

from infra.usage.report import Line, Report, Sums, sums
from shared import records
from shared.errors import JsonValue
from shared.usage.pricing import PROVIDERS, plain
from shared.usage.record import StageUse, Usage, decimal

_HEAD = (
    "outcome",
    "swapper",
    "enhancer",
    "upscaler",
    "prices",
    "jobs",
    "frames",
    "megapixels",
    "device s",
    "work s",
    "wake s",
    "cost",
)
_WORDS = 5
"""Columns of the table that hold words; the others are numbers, and stand to the right."""
_COLUMNS = (
    *("tenant", "job", "accepted", "ended", "outcome", "code", "priority", "media", "seconds", "frames", "pixels"),
    *("swapper", "boost", "enhancer", "upscaler"),
    *(f"device_{provider}" for provider in (*PROVIDERS, "other")),
    *("work", "wake", "stored_bytes", "prices", "currency", "cost"),
)


def table(report: Report) -> str:
    rows = [_HEAD, *(_row(line) for line in report.lines())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    totals = report.totals() or {"": Decimal("0.00")}
    shown = [f"total  {amount} {currency}".rstrip() for currency, amount in totals.items()]
    head = f"{report.tenant}, {report.month}: {len(report.records)} jobs"
    return "\n".join([head, *lines, *shown]) + "\n"


def csv_lines(report: Report) -> str:
    """A line a job; the total is the sum of the last column, rounded once."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_cells(one) for one in report.records)
    return text.getvalue()


def json_text(report: Report) -> str:
    document: dict[str, JsonValue] = {
        "tenant": report.tenant,
        "month": report.month,
        "totals": {currency: str(amount) for currency, amount in report.totals().items()},
        "sums": _sums(sums(report.records)),
        "lines": [_line(line) for line in report.lines()],
        "jobs": [records.write(one) for one in report.records],
    }
    return json.dumps(document, indent=2) + "\n"


FORMATS: Mapping[str, Callable[[Report], str]] = {"table": table, "csv": csv_lines, "json": json_text}


def _row(line: Line) -> tuple[str, ...]:
    total = line.sums
    device = sum(total.device.values(), Decimal(0))
    return (
        *(line.outcome, line.swapper, line.enhancer or "-", line.upscaler or "-", line.prices),
        *(str(total.jobs), str(total.frames), f"{Decimal(total.pixels) / 10**6:.1f}"),
        *(f"{seconds:.2f}" for seconds in (device, total.work, total.wake)),
        f"{plain(total.cost)} {line.currency}",
    )


def _aligned(row: tuple[str, ...], widths: list[int]) -> list[str]:
    pairs = list(zip(row, widths, strict=True))
    return [text.ljust(width) for text, width in pairs[:_WORDS]] + [text.rjust(width) for text, width in pairs[_WORDS:]]


def _line(line: Line) -> JsonValue:
    names = ("currency", "prices", "outcome", "swapper", "enhancer", "upscaler")
    return {**{name: str(getattr(line, name)) for name in names}, **_sums(line.sums), "cost": plain(line.sums.cost)}


def _sums(total: Sums) -> dict[str, JsonValue]:
    return {
        "jobs": total.jobs,
        "frames": total.frames,
        "pixels": total.pixels,
        "work_seconds": float(total.work),
        "wake_seconds": float(total.wake),
        "device_seconds": {provider: float(seconds) for provider, seconds in total.device.items()},
        "stored_bytes": total.stored_bytes,
    }


def _cells(one: Usage) -> tuple[object, ...]:
    job, bill = one.measures, one.bill
    modes = job.modes
    return (
        *(one.tenant, one.job, one.accepted, one.ended, job.outcome, one.code, one.priority),
        *(job.media, plain(decimal(job.seconds)), job.frames, job.pixels),
        *(modes.swapper, modes.boost, modes.enhancer, modes.upscaler),
        *_device(job.device),
        *(_added(one.stages, "work"), _added(one.stages, "wake"), one.stored_bytes),
        *(bill.prices, bill.currency, bill.cost),
    )


def _device(seconds: Mapping[str, JsonValue]) -> tuple[str, ...]:
    known = [decimal(seconds.get(provider, 0)) for provider in PROVIDERS]
    others = sum((decimal(value) for name, value in seconds.items() if name not in PROVIDERS), Decimal(0))
    return tuple(plain(value) for value in (*known, others))


def _added(stages: tuple[StageUse, ...], name: str) -> str:
    return plain(sum((decimal(getattr(stage, name)) for stage in stages), Decimal(0)))
