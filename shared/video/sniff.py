"""Which container a file is, told from its bytes, never from a name: only what is listed here reaches a demuxer.

An animated picture is a video; a still one is none. Playlists, scripts that join files and descriptions of streams are
text, so none of them ever gets further than this. Knows the pictures' formats and the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.imaging import sniff as pictures
from shared.rejections import MediaEmptyError, UnsupportedMediaTypeError
from shared.video import animations
from shared.video.source import Source


@dataclass(frozen=True)
class Kind:
    name: str
    """As in Facts.container."""
    content_type: str
    demuxer: str
    """FFmpeg's name; empty for WebP, of which it reads no animation."""


MP4 = Kind("mp4", "video/mp4", "mov")
MOV = Kind("mov", "video/quicktime", "mov")
MKV = Kind("mkv", "video/x-matroska", "matroska")
WEBM = Kind("webm", "video/webm", "matroska")
GIF = Kind("gif", "image/gif", "gif")
WEBP = Kind("webp", "image/webp", "")
PNG = Kind("png", "image/apng", "apng")
KINDS = {kind.name: kind for kind in (MP4, MOV, MKV, WEBM, GIF, WEBP, PNG)}

HEAD = 4096
"""First bytes that tell."""
_EBML = b"\x1a\x45\xdf\xa3"
_DOC_TYPE = b"\x42\x82"
_OLD_QUICKTIME = frozenset({b"moov", b"mdat", b"wide", b"pnot"})
"""First boxes of files older than the box that says what they are."""
_ANIMATED = {pictures.GIF: GIF, pictures.WEBP: WEBP, pictures.PNG: PNG}


def sniff(source: Source) -> Kind | None:
    """The container; None for a still picture of a format that we read.

    Raises MediaEmptyError for no bytes, UnsupportedMediaTypeError for what is neither.
    """
    head = source.at(0, HEAD)
    if not head:
        raise MediaEmptyError
    if head.startswith(_EBML):
        return _matroska(head)
    if head[4:8] in _OLD_QUICKTIME:
        return MOV
    try:
        picture = pictures.sniff(head)
    except UnsupportedMediaTypeError:
        if head[4:8] != b"ftyp":
            raise
        return MOV if head[8:12] == b"qt  " else MP4
    kind = _ANIMATED.get(picture)
    return kind if kind is not None and animations.is_animated(kind.name, source) else None


def may_move(head: bytes) -> bool:
    """Whether a file that begins so has to be looked at further: a film, or a picture of a kind that can be animated.

    `head`: its first HEAD bytes. False also for what is nothing that we read.
    """
    if head.startswith(_EBML) or head[4:8] in _OLD_QUICKTIME:
        return True
    try:
        return pictures.sniff(head) in _ANIMATED
    except (MediaEmptyError, UnsupportedMediaTypeError):
        return head[4:8] == b"ftyp"


def _matroska(head: bytes) -> Kind:
    """RFC 8794, 11.2.6: the document type stands in the file's first element."""
    place = head.find(_DOC_TYPE)
    size = head[place + 2] & 0x7F if place >= 0 else 0
    match head[place + 3 : place + 3 + size].rstrip(b"\0"):
        case b"webm":
            return WEBM
        case b"matroska":
            return MKV
    raise UnsupportedMediaTypeError("This is EBML, but neither Matroska nor WebM.")
