"""How one environment variable becomes one typed field: readers that raise ValueError with what is wrong.

Knows the standard library only; which variables there are stands in `shared.settings` and `shared.edge_settings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

T = TypeVar("T")


def env(variable: str, read: Callable[[str], T], default: T, *, secret: bool = False) -> T:
    """A field read from `variable`; a secret one is never shown, neither by repr nor in an error."""
    metadata = {"variable": variable, "read": read, "default": default, "secret": secret}
    return field(default_factory=lambda: default, metadata=metadata, repr=not secret)


def text(value: str) -> str:
    return value


def whole(lowest: int, highest: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", value) or not lowest <= int(value) <= highest:
            raise ValueError(f"is not a whole number from {lowest} to {highest}")
        return int(value)

    return read


def share(value: str) -> float:
    if not re.fullmatch(r"[0-9]{0,3}(\.[0-9]{0,15})?", value) or value in ("", ".") or not 0 <= float(value) <= 1:
        raise ValueError("is not a number from 0 to 1")
    return float(value)


def one_of(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"is not one of {', '.join(allowed)}")
        return value

    return read


def flag(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return value == "true"


def matching(pattern: str, complaint: str) -> Callable[[str], str]:
    """Takes what the whole pattern matches; `complaint`: what anything else is said to be."""

    def read(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(complaint)
        return value

    return read


store_url = matching(
    r"file:.+|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?",
    "is neither file:<folder> nor s3://<bucket>[/<prefix>]",
)
web_url = matching(r"https?://[^\s/]+.*", "is not an http or https address")
guarded_url = matching(
    r"https://[^\s/]+\S*|http://(127\.0\.0\.1|\[::1\]|localhost)(:[0-9]+)?(/\S*)?",
    "is not an https address (http only on this very machine)",
)
"""What is fetched from there is believed, so nobody on the way may change it."""
token = matching(r"[!-~]{16,}", "is not a token of at least 16 visible ASCII characters")
shared_secret = matching(r"[!-~]{32,}", "is not a secret of at least 32 visible ASCII characters")


def rate_store(value: str) -> str:
    if value != "memory" and not re.fullmatch(r"rediss?://[^\s/]+(/[0-9]*)?", value):
        raise ValueError("is neither `memory` nor redis://[:password@]host[:port][/database]")
    return value
