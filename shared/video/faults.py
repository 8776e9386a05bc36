"""What goes wrong where a video is written. Knows the error tree only."""

from __future__ import annotations

from shared.errors import WakeswapError


class EncodeFailedError(WakeswapError):
    """Our own fault: what was to be written cannot be, or came out other than it went in. Tried again, then failed."""

    code = "encode_failed"
    title = "The video could not be written"
