"""Logs: stdlib logging, one JSON object a line on stderr, with whose event it was and without any secret.

`configure` once a process; `bind` around the work on one event; everything else is plain `logging`. Whatever
a library logs, warns or dies of comes out in the same form.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType
from typing import Any, TextIO

from shared.telemetry.redact import Redactor

LONGEST = 16_384
"""Characters of one value that are kept."""

_fields: ContextVar[Mapping[str, str]] = ContextVar("wakeswap_log_fields", default=MappingProxyType({}))
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

Log = logging.LoggerAdapter[logging.Logger]


class JsonFormatter(logging.Formatter):
    """One line a record: time, level, logger, message, what `bind` and `extra` say, and the traceback."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": self._text(_message(record)),
        }
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        for name, value in {**_fields.get(), **extra}.items():
            line.setdefault(str(name), self._clean(value))
        if record.exc_info and record.exc_info[0]:
            line["exception"] = self._clean(self.formatException(record.exc_info))
        elif record.exc_text:
            line["exception"] = self._clean(record.exc_text)
        if record.stack_info:
            line["stack"] = self._clean(record.stack_info)
        # ASCII JSON escapes every control character and line separator except DEL.
        return json.dumps(line).replace("\x7f", "\\u007f")

    def _clean(self, value: object) -> object:
        """A JSON value without secrets; bytes by their size, unknown objects by their text."""
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if value - value == 0 else str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return f"<{len(value)} bytes>"
        if isinstance(value, Mapping):
            return {self._text(name): self._clean(item) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._clean(item) for item in value]
        return self._text(value)

    def _text(self, value: object) -> str:
        text = self._redact(str(value))
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


class StageLog(Log):
    """A logger with fixed fields; a call's own `extra` adds to them."""

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[object, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


def stage_log(stage: str) -> StageLog:
    """The log that a stage is handed; its lines carry the stage's name."""
    return StageLog(logging.getLogger(f"wakeswap.{stage}"), {"stage": stage})


@contextmanager
def bind(**fields: str) -> Iterator[None]:
    """Put these into every line logged inside, by whatever library (tenant, job, stage, trace_id, event).

    Empty ones are left out. A thread started inside does not inherit them: run it in `contextvars.copy_context()`.
    """
    token = _fields.set({**_fields.get(), **{name: value for name, value in fields.items() if value}})
    try:
        yield
    finally:
        _fields.reset(token)


def configure(level: str = "INFO", secrets: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """Make this the process's only way to log; `secrets` are values that no line may show. May be called again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(Redactor(secrets)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False
    sys.excepthook = _log_death
    threading.excepthook = _log_thread_death
    # These log every request, with headers, at their lower levels.
    for noisy in ("boto3", "botocore", "urllib3", "s3transfer"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _message(record: logging.LogRecord) -> object:
    """The message with its arguments in; a wrong format string must not cost the line."""
    if not record.args:
        return _sized(record.msg)
    args = record.args
    if isinstance(args, tuple):
        record.args = tuple(_sized(value) for value in args)
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {args!r}"


def _sized(value: object) -> object:
    return f"<{len(value)} bytes>" if isinstance(value, bytes | bytearray | memoryview) else value


def _log_death(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger("wakeswap").critical("uncaught exception", exc_info=(kind, error, trace))


def _log_thread_death(died: threading.ExceptHookArgs) -> None:
    if died.exc_value is not None:
        _log_death(died.exc_type, died.exc_value, died.exc_traceback)
