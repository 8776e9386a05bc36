"""What goes wrong where a video is written, and what becomes of a damaged one. Knows the error tree only."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import WakeswapError
from shared.rejections import MediaCorruptError, MediaTruncatedError


class EncodeFailedError(WakeswapError):
    """Our own fault: what was to be written cannot be, or came out other than it went in. Tried again, then failed."""

    code = "encode_failed"
    title = "The video could not be written"


def check_damage(words: Sequence[str], damaged: str) -> None:
    """`words` as in Facts, `damaged` as in Options.

    Raises MediaTruncatedError or MediaCorruptError for damage that the job does not ask to be passed over.
    """
    if words and damaged == "refuse":
        fault = MediaTruncatedError if "truncated" in words else MediaCorruptError
        detail = "The video is damaged. `damaged`: `finish` makes what can be made of it."
        raise fault(detail, context={"damage": [*words], "field": "damaged"})
