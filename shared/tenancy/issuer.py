"""Reads an issuer's key set from its address. Knows urllib; the address is the operator's, never a token's."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request

LONGEST = 512 * 1024
"""Bytes; a set of some dozen keys has a few thousand."""
TIMEOUT_SECONDS = 3.0
"""Without a byte."""
PATIENCE_SECONDS = 6.0
"""For all of it."""


def download(url: str) -> bytes:
    """The body of `url`. Raises OSError, also for any status but success and for what is too long or too slow."""
    ends = time.monotonic() + PATIENCE_SECONDS
    body = b""
    try:
        with _opener().open(url, timeout=TIMEOUT_SECONDS) as answer:
            while part := answer.read1(65_536):
                body += part
                if len(body) > LONGEST or time.monotonic() > ends:
                    raise TimeoutError("too long or too slow")
    except urllib.error.HTTPError as error:
        with error:
            raise ConnectionError(f"status {error.code}") from None
    except http.client.HTTPException as error:
        raise ConnectionError(type(error).__name__) from error
    return body


def _opener() -> urllib.request.OpenerDirector:
    """HTTP and nothing else, by the environment's proxies; a redirect is a status like any other that is no success:
    it could lead to an address that nobody vouches for."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener
