"""What bytes are that are no picture we read: archives, playlists, documents, films. Names for the refusal, no more.

Nothing here is unpacked or parsed: first bytes only. Pure bytes; knows nothing else.
"""

from __future__ import annotations

import re

_HEAD = 1024
"""Bytes that are looked at; a tape archive's mark stands at 257."""
_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"PK\x07\x08", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x04\x22\x4d\x18", "lz4 data"),
    (b"\x1f\x9d", "compress data"),
    (b"MSCF", "a cabinet archive"),
    (b"%PDF-", "a PDF document"),
    (b"%!", "a PostScript document"),
    (b"\xc5\xd0\xd3\xc6", "a PostScript document"),
    (b"\x1aE\xdf\xa3", "a film (Matroska)"),
    (b"FLV\x01", "a film (FLV)"),
    (b"OggS", "a film or sound (Ogg)"),
    (b"ID3", "a sound (MP3)"),
    (b"8BPS", "a Photoshop document"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"\0\0\x01\0", "an icon"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 picture"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
)
_TEXTS = (
    (rb"#extm3u", "a playlist (M3U8)"),
    (rb"ffconcat version", "a playlist (ffconcat)"),
    (rb"\[playlist\]", "a playlist (PLS)"),
    (rb"<asx\b", "a playlist (ASX)"),
    (rb"(?s)(<\?xml\b|<!--|<!doctype\s+svg\b).*<svg\b|<svg\b", "an SVG document"),
    (rb"<!doctype\s+html\b|<html\b|<head\b|<body\b|<script\b", "an HTML page"),
    (rb"<\?xml\b|<!doctype\b|<!entity\b", "an XML document"),
    (rb"[\[{]\s*[\"\[{\]}]", "a JSON document"),
)
"""In lower case, from the first character that is no space; compiled when the first stranger comes."""
_MARKS = b"\xef\xbb\xbf\xff\xfe\xfe\xff"
"""Bytes of byte order marks."""


def name_of(data: bytes) -> str:
    """What the bytes are, with its article, as the end of `This is ...`; empty when it is none of what is known."""
    head = data[:_HEAD]
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "a tar archive"
    if head[4:8] == b"ftyp":
        return "a film (MP4)"
    if head[:4] == b"RIFF":
        return "a film or sound (RIFF)"
    text = head.replace(b"\0", b"").lstrip(_MARKS + b" \t\r\n\f\v").lower()  # UTF-16 too
    return next((name for shape, name in _TEXTS if re.match(shape, text)), "")
