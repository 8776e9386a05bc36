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


def store_url(value: str) -> str:
    if not re.fullmatch(r"file:.+|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?", value):
        raise ValueError("is neither file:<folder> nor s3://<bucket>[/<prefix>]")
    return value


def web_url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+.*", value):
        raise ValueError("is not an http or https address")
    return value


def guarded_url(value: str) -> str:
    """What is fetched from there is believed, so nobody on the way may change it."""
    if not re.fullmatch(r"https://[^\s/]+\S*|http://(127\.0\.0\.1|\[::1\]|localhost)(:[0-9]+)?(/\S*)?", value):
        raise ValueError("is not an https address (http only on this very machine)")
    return value


def token(value: str) -> str:
    if not re.fullmatch(r"[!-~]{16,}", value):
        raise ValueError("is not a token of at least 16 visible ASCII characters")
    return value


def shared_secret(value: str) -> str:
    if not re.fullmatch(r"[!-~]{32,}", value):
        raise ValueError("is not a secret of at least 32 visible ASCII characters")
    return value


def rate_store(value: str) -> str:
    if value != "memory" and not re.fullmatch(r"rediss?://[^\s/]+(/[0-9]*)?", value):
        raise ValueError("is neither `memory` nor redis://[:password@]host[:port][/database]")
    return value
