"""API keys: how they are made, kept and held against what a caller sends. Pure but for randomness.

    wk_<8 look-up characters>_<52 characters: 32 random bytes in base32>

Only the look-up characters and a salted SHA-256 are kept. A hash that is slow on purpose protects what people
choose; nobody guesses one of 2^256 keys, however fast the hash.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from shared.tenancy.caller import SCOPES
from shared.tenancy.fields import Several, Text, Time, Word

LOOK_UP_CHARACTERS = 8
MAX_LIVE = 2
"""Keys of one tenant that open something: the old one and the new one, while callers change over."""
MAX_KEPT = 16
"""Keys in a tenant's file, with those that have expired."""
_FORM = re.compile(r"wk_([a-z2-7]{8})_[a-z2-7]{52}")


@dataclass(frozen=True)
class ApiKey:
    """What is kept of a key; nobody can call with it."""

    look_up: Annotated[str, Text("[a-z2-7]{8}", "the 8 characters that follow wk_ in the key")]
    """The characters by which the key is found; they may be shown."""
    salt: Annotated[str, Text("[0-9a-f]{32}", "16 bytes in lower-case hexadecimal")] = field(repr=False)
    """16 random bytes in hexadecimal."""
    digest: Annotated[str, Text("[0-9a-f]{64}", "a SHA-256 in lower-case hexadecimal")] = field(repr=False)
    """SHA-256 of salt and key in hexadecimal."""
    created: Annotated[str, Time()]
    """When it was made."""
    expires: Annotated[str, Time(optional=True)] = ""
    """From when on it opens nothing; empty: never."""
    scopes: Annotated[tuple[str, ...], Several(Word(SCOPES), most=len(SCOPES), least=1)] = SCOPES
    """What it is good for: `jobs:read`, `jobs:write`."""
    label: Annotated[str, Text("[ -~]{0,64}", "at most 64 printable ASCII characters")] = ""
    """Who has it, for people."""

    @property
    def shown(self) -> str:
        """The look-up characters; empty for a key that an operator made up, of which nothing may be shown."""
        return self.look_up if len(self.look_up) == LOOK_UP_CHARACTERS else ""

    def is_live(self, now: float) -> bool:
        """Whether it has not expired. `now`: seconds since the epoch."""
        return not self.expires or now < datetime.fromisoformat(self.expires).timestamp()


def make(
    now: float, *, scopes: tuple[str, ...] = SCOPES, label: str = "", seconds: float | None = None
) -> tuple[str, ApiKey]:
    """A new key, and what is kept of it. `seconds`: how long it lives; None: until it is revoked."""
    look_up_part, rest = _letters(5), _letters(32)
    key = f"wk_{look_up_part}_{rest}"
    expires = "" if seconds is None else _time(now + seconds)
    return key, keep(key, created=_time(now), expires=expires, scopes=scopes, label=label)


def keep(
    key: str,
    *,
    created: str = "1970-01-01T00:00:00Z",
    expires: str = "",
    scopes: tuple[str, ...] = SCOPES,
    label: str = "",
) -> ApiKey:
    """What is kept of a key of any form."""
    salt = secrets.token_hex(16)
    return ApiKey(look_up(key), salt, digest(salt, key), created, expires, scopes, label)


def look_up(key: str) -> str:
    """Under what a key is found: its look-up characters, or a digest of one that an operator made up.

    The digest is made in either case, so that the time taken tells nothing.
    """
    made_up = digest("", key)
    found = _FORM.fullmatch(key)
    return found[1] if found else made_up


def opens(kept: ApiKey, key: str, now: float) -> bool:
    """Whether this is the key, and live; the same work whatever the answer."""
    same = hmac.compare_digest(kept.digest, digest(kept.salt, key))
    return kept.is_live(now) and same


def digest(salt: str, key: str) -> str:
    """SHA-256 of the salt's bytes and the key, hex."""
    return hashlib.sha256(bytes.fromhex(salt) + key.encode("utf-8", "surrogatepass")).hexdigest()


def _letters(count: int) -> str:
    return base64.b32encode(secrets.token_bytes(count)).decode().rstrip("=").lower()


def _time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


NOBODY = keep(secrets.token_hex(32))
"""What a key is held against that nobody has."""
