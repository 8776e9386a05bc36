"""Files over HTTP(S): a plain GET, counted to the last byte, tried again only for what can pass."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from shared.errors import ModelAccessDeniedError, ModelError, ModelNotFoundError
from shared.models.receiving import Received, Report, receive

ATTEMPTS = 4
TIMEOUT = 30.0
"""Seconds without a byte before the connection counts as lost."""
FIRST_WAIT = 0.5
"""Seconds before the second try; doubles, with jitter, up to 8."""


class _InterruptedError(ModelError):
    """May pass: the server is busy, or the connection broke."""


def fetch(url: str, target: Path, report: Report) -> Received:
    """Write the body of `url` to `target`. Raises ModelNotFoundError, ModelAccessDeniedError, ModelError."""
    retrying = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential_jitter(multiplier=FIRST_WAIT, max=8, jitter=FIRST_WAIT),
        retry=retry_if_exception(lambda error: isinstance(error, _InterruptedError)),
        reraise=True,
    )
    return retrying(_fetch_once, url, target, report)


def _fetch_once(url: str, target: Path, report: Report) -> Received:
    host = urlsplit(url).hostname
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:  # noqa: S310 (scheme checked by the grammar)
            _refuse_downgrade(url, response.url)
            total = int(response.headers.get("Content-Length") or 0)
            received = receive(response, target, total, report)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error.code, host) from error
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _InterruptedError(f"The connection to {host} failed.") from error
    if total and received.size != total:
        raise _InterruptedError(f"{host} sent {received.size} of {total} bytes.")
    return received


def _refuse_downgrade(asked: str, answered: str) -> None:
    if urlsplit(asked).scheme == "https" and urlsplit(answered).scheme != "https":
        raise ModelAccessDeniedError(f"{urlsplit(asked).hostname} redirects to an unencrypted address.")


def _refused(status: int, host: str | None) -> ModelError:
    if status in (401, 403):
        return ModelAccessDeniedError(f"{host} refuses access (status {status}).")
    if status in (404, 410):
        return ModelNotFoundError(f"{host} does not have the file (status {status}).")
    if status == 429 or status >= 500:
        return _InterruptedError(f"{host} is not available (status {status}).")
    return ModelError(f"{host} answered with status {status}.")
