"""Keyed hashes: a picture, a name or an address can be found again in the audit by who has it and the key, and by
nobody else. A plain digest would let anyone who may read the audit ask whether a picture he has was sent.

HMAC-SHA256 (RFC 2104) under a key made for each kind of thing. Pure.
"""

from __future__ import annotations

import hashlib
import hmac


class Marks:
    """Without a key there are no marks, every one is empty, and the object is false."""

    def __init__(self, key: str = "") -> None:
        self._key = key.encode()
        self._name = hashlib.sha256(b"wakeswap audit key\n" + self._key).hexdigest()[:8]

    def __bool__(self) -> bool:
        return bool(self._key)

    def picture(self, digest: str) -> str:
        """Of the SHA-256 of a picture's bytes, in hexadecimal."""
        return self._of("picture", digest)

    def name(self, key: str) -> str:
        """Of an object's key, which may hold a person's name."""
        return self._of("name", key)

    def address(self, address: str) -> str:
        return self._of("address", address)

    def _of(self, kind: str, value: str) -> str:
        """`<8 digits that name the key>:<HMAC>`, so that marks of an earlier key are told from those of this one."""
        if not self._key:
            return ""
        text = f"{kind}\n{value}".encode("utf-8", "surrogatepass")
        return f"{self._name}:{hmac.new(self._key, text, hashlib.sha256).hexdigest()}"
