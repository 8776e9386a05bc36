"""Work on a thread of its own, whose end others can wait for. Knows the standard library only.

Threads are daemons: a process that was told to end does not wait for work it has handed back.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def start(name: str, work: Callable[[], T]) -> Future[T]:
    """Begin `work` now, with the caller's context variables (the log's fields); the future tells how it ended."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the product's only broad except: the waiter gets the error
            future.set_exception(error)
        else:
            future.set_result(result)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name=name, daemon=True).start()
    return future
