"""Pictures that a job names by https address: fetched into files of our own, within bounds of hosts, time and bytes.

Every hop is judged anew: the host must be among the tenant's, every number of its name public, and the connection
goes to such a number. Nothing is sent along but the address; no answer is ever unpacked. Knows the pinned connection
and the error tree; what the bytes are is found out by whoever examines every picture.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import BinaryIO, cast
from urllib.parse import urldefrag, urljoin

from shared.errors import OverloadedError, PayloadTooLargeError
from shared.net import address
from shared.net.address import Target
from shared.net.pinned import Pinned, Way, numbers
from shared.refusals import FetchUnavailableError
from shared.rejections import FetchFailedError, ImageTooLargeError, UrlNotAllowedError, VideoTooLargeError

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAY_PASS = frozenset({408, 425, 429})
"""4xx answers that say `later`, not `never`."""
_HEADERS = {"Accept": "image/*, video/*", "Accept-Encoding": "identity"}
_CHUNK = 65_536
_NONE: Mapping[str, int] = {}


@dataclass(frozen=True)
class Bounds:
    seconds: float = 20.0
    """For all pictures of one request together, names and redirects included."""
    total_bytes: int = 110_000_000
    """Of all pictures of one request together."""
    redirects: int = 3
    """Followed for one picture."""
    at_once: int = 4
    """Requests of this process that fetch: a slow host must not hold every slot."""
    plain_http: bool = False
    """Whether http on port 80 will do."""


class Fetcher:
    """One for a process; safe in several threads."""

    def __init__(self, bounds: Bounds | None = None, way: Way | None = None) -> None:
        self._bounds, self._way = bounds or Bounds(), way or Way()
        self._free = threading.BoundedSemaphore(self._bounds.at_once)

    def fetch(
        self,
        urls: Iterable[str],
        hosts: Collection[str],
        max_bytes: int,
        seconds: float,
        *,
        videos: Mapping[str, int] = _NONE,
    ) -> dict[str, BinaryIO]:
        """A file for each address, positioned at its start; the caller closes them.

        `hosts`: those allowed, as in Policy.fetch_hosts; `max_bytes`: of one picture; `seconds`: left for all of it;
        `videos`: addresses that may lead to a video, and how many bytes it may have. All addresses are judged before
        the first is asked. Raises UrlNotAllowedError, FetchFailedError, FetchUnavailableError, ImageTooLargeError,
        VideoTooLargeError, PayloadTooLargeError and OverloadedError.
        """
        errand = _Errand(self._bounds, self._way, hosts, min(seconds, self._bounds.seconds))
        targets = {url: errand.judged(url) for url in urls}
        if not targets:
            return {}
        if not self._free.acquire(blocking=False):
            raise OverloadedError("Too many pictures are being fetched.")
        try:
            with ExitStack() as undo:
                files = {
                    url: undo.enter_context(errand.file(target, videos.get(url) or max_bytes, video=url in videos))
                    for url, target in targets.items()
                }
                undo.pop_all()
                return files
        finally:
            self._free.release()


class _Errand:
    """The files of one request: what they may take is shared by all of them."""

    def __init__(self, bounds: Bounds, way: Way, hosts: Collection[str], seconds: float) -> None:
        self._bounds, self._way, self._hosts = bounds, way, hosts
        self._max_bytes, self._video = 0, False
        self._ends = time.monotonic() + seconds
        self._left = bounds.total_bytes

    def judged(self, url: str) -> Target:
        target = address.examine(url, plain_http=self._bounds.plain_http)
        if not address.listed(target.host, self._hosts):
            raise UrlNotAllowedError
        return target

    def file(self, target: Target, max_bytes: int, *, video: bool) -> BinaryIO:
        """The bytes behind an address, redirects followed, in a file that has no name and is gone once closed."""
        self._max_bytes, self._video = max_bytes, video
        with ExitStack() as undo:
            file = undo.enter_context(cast("BinaryIO", tempfile.TemporaryFile()))  # noqa: SIM115 - closed by the caller
            for _ in range(self._bounds.redirects + 1):
                following = self._hop(target, file)
                if following is None:
                    file.seek(0)
                    undo.pop_all()
                    return file
                target = following
        raise FetchFailedError("The address leads from one to the next.")

    def _hop(self, target: Target, file: BinaryIO) -> Target | None:
        """One request: None when the picture is in the file, or where it is instead."""
        try:
            ips = numbers(target, self._way, self._time_left())
            if not ips:
                raise UrlNotAllowedError  # as if it led inside: which names exist is not told
            with Pinned(target, ips, self._time_left(), self._way) as connection:
                answer = connection.ask("GET", _HEADERS)
                if answer.status in _REDIRECTS:
                    return self.judged(_following(target, answer.headers.get("Location", "")))
                self._accept(answer)
                self._receive(answer, file)
                connection.check()
                if answer.length:
                    raise FetchUnavailableError("The picture's server ended too early.")
        except (OSError, HTTPException) as error:
            raise FetchUnavailableError from error
        return None

    def _accept(self, answer: HTTPResponse) -> None:
        status = answer.status
        if status >= 500 or status in _MAY_PASS:
            raise FetchUnavailableError(f"The picture's server answered {status}.", context={"status": status})
        if status != 200:
            raise FetchFailedError(f"The picture's server answered {status}.", context={"status": status})
        if answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise FetchFailedError("The picture's server sends it compressed, though that was not asked for.")
        self._fits(answer.length or 0)

    def _receive(self, answer: HTTPResponse, file: BinaryIO) -> None:
        size = 0
        while chunk := answer.read1(_CHUNK):  # `read` takes all there is for a chunk that says it has -1 bytes
            size += len(chunk)
            self._fits(size)
            file.write(chunk)
        self._left -= size

    def _fits(self, size: int) -> None:
        if size > self._max_bytes:
            facts = {"limit_bytes": self._max_bytes}
            if self._video:
                raise VideoTooLargeError(f"A video has at most {self._max_bytes} bytes.", context={**facts})
            raise ImageTooLargeError(f"A picture has at most {self._max_bytes} bytes.", context={**facts})
        if size > self._left:
            total = self._bounds.total_bytes
            raise PayloadTooLargeError(f"The pictures together have at most {total} bytes.", context={"limit": total})

    def _time_left(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise FetchUnavailableError
        return left


def _following(target: Target, location: str) -> str:
    """Where a redirect leads. Raises UrlNotAllowedError for what is no address at all."""
    try:
        return urldefrag(urljoin(target.url, location)).url
    except ValueError:
        raise UrlNotAllowedError from None
