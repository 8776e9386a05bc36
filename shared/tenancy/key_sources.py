"""Where the keys come from that tokens are checked with: from a setting, or from the issuer's address.

Knows key sets; what an address answers is handed in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from logging import getLogger
from typing import Protocol

from shared.refusals import TokenKeysUnavailableError
from shared.tenancy.key_sets import Key, matching, read_set

log = getLogger(__name__)

LIFETIME_SECONDS = 300.0
"""Age at which a set from an address is read anew: within it, a key that the issuer withdrew is still believed."""
COOLDOWN_SECONDS = 30.0
"""Shortest time from one reading to the next, whatever key ids tokens make up and however often reading fails."""


class KeySource(Protocol):
    def find(self, key_id: str) -> Sequence[Key]:
        """The keys that a token with this key id (empty: without one) may be checked with.

        Raises TokenKeysUnavailableError.
        """
        ...


class FixedKeys:
    """Keys that do not change while the process runs."""

    def __init__(self, keys: Callable[[], Sequence[Key]]) -> None:
        """`keys` is called once, with the first token; it raises ValueError."""
        self._read = keys
        self._keys: Sequence[Key] | None = None

    def find(self, key_id: str) -> Sequence[Key]:
        if self._keys is None:
            try:
                self._keys = self._read()
            except ValueError as error:
                log.exception("the keys for tokens cannot be used")
                raise TokenKeysUnavailableError from error
        return matching(self._keys, key_id)


class RemoteKeys:
    """The issuer's set: read with the first token, kept, read anew when it is old or lacks a token's key.

    A reading that fails leaves the keys that are known as they are.
    """

    def __init__(
        self,
        download: Callable[[], bytes],
        *,
        lifetime: float = LIFETIME_SECONDS,
        cooldown: float = COOLDOWN_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`download` raises OSError."""
        self._download, self._clock = download, clock
        self._lifetime, self._cooldown = lifetime, cooldown
        self._keys: Sequence[Key] = ()
        self._read_at = self._tried_at = float("-inf")
        self._reading = threading.Lock()

    def find(self, key_id: str) -> Sequence[Key]:
        if self._clock() - self._read_at >= self._lifetime:
            self._refresh(wait=not self._keys)
        found = matching(self._keys, key_id)
        if not found:
            self._refresh(wait=True)
            found = matching(self._keys, key_id)
        if not self._keys:
            raise TokenKeysUnavailableError
        return found

    def _refresh(self, *, wait: bool) -> None:
        """Read once for everybody who asks meanwhile; who has keys already does not `wait` for it."""
        if not self._reading.acquire(blocking=wait):
            return
        try:
            now = self._clock()
            if now - self._tried_at < self._cooldown:
                return
            self._tried_at = now
            self._keys = read_set(self._download())
            self._read_at = now
        except (OSError, ValueError) as error:
            log.warning("the issuer's keys cannot be read; those known stay: %s", error)
        finally:
            self._reading.release()
