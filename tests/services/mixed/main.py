"""Takes every kind of end, and imports nothing but what its first parameter names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.events.payloads import Failure, Rejection, Result

if TYPE_CHECKING:
    from shared.context import Context

seen: list[Result | Rejection | Failure] = []


def handle(event: Result | Rejection | Failure, ctx: Context) -> None:
    seen.append(event)
