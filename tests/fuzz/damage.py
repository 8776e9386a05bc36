"""Damage to bytes and to JSON documents, by chance. Pure but for the dice it is given."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

_PIECES = (b"\x00", b"\xff\xfe", b"\r\n", b"\r\n\r\n", b'"', b"{", b"[" * 300, b"%00", b"%ff", b"\xed\xa0\x80",
           b"-1", b"99999999999999999999", b"1e999", b"NaN", b"; charset=utf-16", b"../", b"\\", b" ", b"A" * 9000,
           b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Expect: 100-continue\r\n")  # fmt: skip

VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: -1,
    lambda: 0,
    lambda: 2**31,
    lambda: 2**63,
    lambda: 10**400,
    lambda: 1e308,
    lambda: 5e-324,
    lambda: -0.0,
    lambda: "",
    lambda: " ",
    lambda: "\x00",
    lambda: "\ud800",
    lambda: "\ufffe",
    lambda: "A\u0301" * 200,
    lambda: "\U0001f600" * 50,
    lambda: "../../../etc/passwd",
    lambda: "tenants/other/inbox/a.png",
    lambda: "%2e%2e%2f",
    lambda: "a" * 70_000,
    lambda: "9" * 5000,
    lambda: "\r\nX: y",
    list,
    dict,
    lambda: [[[[[]]]]],
    lambda: _deep(70),
    lambda: {"": ""},
    lambda: {str(number): number for number in range(500)},
    lambda: [0] * 5000,
)
"""What a careless reader did not think of."""


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def damage(data: bytes, chance: random.Random) -> bytes:
    """One to four changes: bits, pieces cut, doubled, moved in, or the end cut off."""
    for _ in range(chance.randint(1, 4)):
        data = chance.choice(_CHANGES)(data, chance)
    return data


def _flipped(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.randint(1, 40) :]


def _doubled(data: bytes, chance: random.Random) -> bytes:
    at, size = chance.randrange(len(data) + 1), chance.randint(1, 60)
    return data[: at + size] + data[at : at + size] + data[at + size :]


def _with_piece(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_PIECES) + data[at:]


def _shortened(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _noisy(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(chance.randint(1, 16)) + data[at:]


_CHANGES = (_flipped, _flipped, _cut, _doubled, _with_piece, _shortened, _noisy)


def change(document: Any, chance: random.Random) -> Any:
    """The document with one value or name, somewhere in it, changed. The document itself is changed too."""
    holders = [holder for holder in _holders(document) if holder]
    if not holders:
        return chance.choice(VALUES)()
    holder = chance.choice(holders)
    key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    match chance.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[str(key).upper()] = holder.pop(key)
        case 2 if isinstance(holder, dict):
            holder[chance.choice(("extra", "", "ce-id", "data_base64", "x" * 300, "specversion"))] = holder[key]
        case _:
            holder[key] = chance.choice(VALUES)()
    return document


def _holders(value: Any) -> list[Any]:
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for item in inner for found in _holders(item))]
