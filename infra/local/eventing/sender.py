"""One delivery attempt over HTTP: the event out, the meaning of the answer back. Knows no retries and no storage."""

import aiohttp

from infra.local.eventing.cloudevent import CloudEvent, InvalidEventError, binary, is_event, read_event, structured
from infra.local.eventing.delivery import NO_ANSWER, NO_EVENT, Answer, accepted
from infra.local.eventing.spec import Format

DEFAULT_TIMEOUT = 600.0
"""Seconds for one attempt where the manifest sets none: the longest that Knative Serving lets a request run."""

UNREACHED = "local-platform-unreached"
"""Header of an activator's answer to a request that only stood in its queue: the function never saw it."""

_BODY_LIMIT = 1 << 20


class Sender:
    """Posts events; use as an async context manager."""

    def __init__(self) -> None:
        # A new connection each time: one kept open may just be closing on the other side, and that would count
        # as a failure of the subscriber.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=True, skip_auto_headers=("Content-Type",)
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def send(
        self, url: str, event: CloudEvent, *, timeout: float | None, content_mode: Format, want_reply: bool
    ) -> Answer:
        """Post the event. Transport errors and the timeout (seconds) come back as NO_ANSWER.

        With `want_reply`, a 2xx whose body is neither empty nor an event comes back as NO_EVENT; without it (dead
        letter sinks) the body of a 2xx is of no interest.
        """
        headers, body = structured(event) if content_mode == "json" else binary(event)
        if want_reply:
            headers["prefer"] = "reply"
        try:
            async with self._session.post(
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout or DEFAULT_TIMEOUT),
            ) as response:
                content = await _read(response)
        except TimeoutError:
            return Answer(NO_ANSWER, f"dispatch error: no answer within {timeout or DEFAULT_TIMEOUT:g} s".encode())
        except (aiohttp.ClientError, OSError) as error:
            return Answer(NO_ANSWER, f"dispatch error: {error or type(error).__name__}".encode())
        if want_reply and accepted(response.status):
            return _with_reply(response, content)
        return Answer(response.status, content, reached=UNREACHED not in response.headers)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body up to one byte over the limit, so that too much can be told from enough."""
    content = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        content += chunk
        if len(content) > _BODY_LIMIT:
            break
    return bytes(content[: _BODY_LIMIT + 1])


def _with_reply(response: aiohttp.ClientResponse, content: bytes) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    if len(content) > _BODY_LIMIT:
        return Answer(NO_EVENT, f"the answer is larger than {_BODY_LIMIT} bytes".encode())
    if not is_event(headers):
        if not content:
            return Answer(response.status)
        return Answer(NO_EVENT, b"the answer has a body that is not a CloudEvent: " + content)
    try:
        return Answer(response.status, reply=read_event(headers.items(), content))
    except InvalidEventError as error:
        return Answer(NO_EVENT, f"the answer is not a valid CloudEvent: {error}".encode())
