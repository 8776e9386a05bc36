"""Progress of a fetch on standard error: a bar on a terminal, one JSON line per finished set elsewhere.

rich is imported only for a terminal.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from shared.models.progress import Progress, Step


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[Progress]:
    """A reporter that fits `stream` (default: standard error)."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield _lines(stream)
        return
    with _bars(stream) as bars:
        yield bars


def _lines(stream: TextIO) -> Progress:
    started: dict[str, float] = {}

    def report(step: Step) -> None:
        first = step.name not in started
        since = started.setdefault(step.name, time.monotonic())
        if first or step.action == "ready":
            seconds = round(time.monotonic() - since, 3)
            record = {"event": step.action, "model": step.name, "seconds": seconds}
            print(json.dumps(record), file=stream, flush=True)

    return report


@contextmanager
def _bars(stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Bars(*columns, console=Console(file=stream)) as bars:
        yield _reporter(bars.add_task, bars.update)


def _reporter(add: Callable[..., int], update: Callable[..., None]) -> Progress:
    tasks: dict[str, int] = {}

    def report(step: Step) -> None:
        if step.name not in tasks:
            tasks[step.name] = add(step.name, total=None)
        words = {"wait": "waiting for another process", "fetch": step.file, "convert": f"converting {step.file}"}
        words["push"] = f"pushing {step.file}"
        text = f"{step.name}: {words.get(step.action, 'ready')}"
        update(tasks[step.name], description=text, total=step.total or None, completed=step.done)

    return report
