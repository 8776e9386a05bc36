"""Subtitles as text, from the packets of one container to those of another. Nothing is decoded by FFmpeg.

Placement and colours that the other format has not are lost; the words and their times are not. Knows the standard
library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

ABLE = {
    "mp4": ("mov_text",),
    "mov": ("mov_text",),
    "webm": ("webvtt",),
    "mkv": ("subrip", "ass", "ssa", "webvtt", "hdmv_pgs_subtitle", "dvd_subtitle", "dvb_subtitle"),
}
"""FFmpeg's names of subtitles that a container holds; the first is what others become."""
HEADER = b"[Script Info]\r\nScriptType: v4.00+\r\n\r\n[Events]\r\n"
"""What FFmpeg's writer of MP4's subtitles asks for."""
_READERS: dict[str, Callable[[bytes], bytes]] = {}
# neither reaches over the begin of another: hostile lines would be looked through again and again
_STYLE = re.compile(rb"\{\\[^{}]*\}")
_TAG = re.compile(rb"</?[a-zA-Z][^<>]*>")
_ASS_FIELDS = 8
"""Before the text of a Matroska block of ASS."""


def rewriter(codec: str, container: str) -> tuple[str, Callable[[bytes], bytes]] | None:
    """The name of the subtitles of `container` and what makes their words of packets of `codec`; None where
    nothing can.

    A packet without words says nothing and is left out. Those of `mov_text` still have to be `timed`.
    """
    able = ABLE[container]
    if codec in able:
        return codec, lambda packet: packet
    read = _READERS.get(codec)
    if read is None:
        return None
    if able[0] == "mov_text":
        return able[0], lambda packet: _TAG.sub(b"", read(packet))
    return able[0], read


def is_plain(codec: str, packet: bytes) -> bool:
    """Whether a packet of `codec` is words alone, so that nothing of its look can be lost. ASS has styles outside."""
    if codec == "mov_text":
        return len(packet) <= 2 + int.from_bytes(packet[:2], "big")
    return codec in ("subrip", "webvtt") and not _STYLE.search(packet) and not _TAG.search(packet)


def timed(words: bytes) -> bytes:
    """A packet of `mov_text` with words alone."""
    return len(words).to_bytes(2, "big") + words


def _timed_text(packet: bytes) -> bytes:
    """3GPP TS 26.245: a length, the text, and boxes about its style."""
    return packet[2 : 2 + int.from_bytes(packet[:2], "big")]


def _ass(packet: bytes) -> bytes:
    text = packet.split(b",", _ASS_FIELDS)[-1]
    return _STYLE.sub(b"", text).replace(rb"\N", b"\n").replace(rb"\n", b"\n").replace(rb"\h", b" ").strip()


def _subrip(packet: bytes) -> bytes:
    return _STYLE.sub(b"", packet).strip()


_READERS.update({"mov_text": _timed_text, "ass": _ass, "ssa": _ass, "subrip": _subrip, "webvtt": _subrip})
