"""What a fetch tells its caller while it runs. Plain data; drawing it is the caller's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Action = Literal["wait", "fetch", "convert", "push", "ready"]


@dataclass(frozen=True)
class Step:
    name: str
    """Of the model or sample group."""
    action: Action
    """"wait": another process is fetching it; "push": it goes to the bucket; "ready": all its files are in place."""
    file: str = ""
    done: int = 0
    """Bytes."""
    total: int = 0
    """Bytes; 0 while not known."""


Progress: TypeAlias = Callable[[Step], None]


def silent(_: Step) -> None:
    """For callers that want no progress."""
