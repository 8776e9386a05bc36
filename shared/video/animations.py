"""Animated pictures walked from block to block: how many, how often they are played, is the end there.

Their data is stepped over, never unpacked. Knows the standard library and the error tree.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from shared.video.delays import shown_for
from shared.video.source import Source
from shared.video.walking import Walk, counted

_IMAGE, _END = 0x2C, 0x3B
"""Of a GIF: first bytes of a picture and of the end."""


def walked(container: str, source: Source) -> Walk:
    """`container`: `gif`, `webp` or `png`. Raises MediaCorruptError for what has blocks without end."""
    match container:
        case "gif":
            return _gif(source)
        case "webp":
            return _webp(source)
    return _png(source)


def is_animated(container: str, source: Source) -> bool:
    """Whether a GIF, WebP or PNG has more than one picture, as far as its blocks say so.

    Never raises for damage; MediaCorruptError for what has blocks without end.
    """
    if container == "webp":
        head = source.at(12, 9)
        return head[:4] == b"VP8X" and len(head) == 9 and bool(head[8] & 2)
    if container == "png":
        return _png_frames(source) > 1
    found = 0
    for block in _gif_blocks(source):
        found += block == _IMAGE
        if found > 1:
            return True
    return False


def _gif(source: Source) -> Walk:
    loops, complete = 1, False
    for block in _gif_blocks(source):
        if block < 0:
            loops = 0 if block == -1 else -block
        complete = block == _END
    return Walk(complete, loops=loops)


def _gif_blocks(source: Source) -> Iterator[int]:
    """GIF89a, appendix B: every picture and the end; of NETSCAPE2.0 how often it is played, as -1 for ever, -n."""
    reader = _Reader(source)
    packed = reader.take(13)[10:11]
    place = _table(packed[0]) if packed else 0
    reader.skip(place)
    while not reader.short:
        block = reader.begin()
        if block == b"\x2c":
            packed = reader.take(9)[8:9]
            reader.skip((_table(packed[0]) if packed else 0) + 1)
            reader.blocks()
            yield _IMAGE
        elif block == b"\x21":
            first = reader.take(1) == b"\xff" and reader.named(b"NETSCAPE2.0")
            data = reader.blocks()
            if first and len(data) >= 3 and data[0] == 1:
                again = struct.unpack("<H", data[1:3])[0]
                yield -(again + 1)
        else:
            if reader.ends(block):
                yield _END
            return


def _table(packed: int) -> int:
    """Bytes of the colour table that a packed field announces."""
    return 3 << (packed & 7) + 1 if packed & 0x80 else 0


class _Reader:
    """Small reads in order, from blocks of the file."""

    _BLOCK = 2**16

    def __init__(self, source: Source) -> None:
        self._source, self._start, self._data, self._at = source, 0, b"", 0
        self._count = 0
        self.short = False
        """Whether a block breaks off."""

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            self._start, self._at = self._start + self._at, 0
            self._data = self._source.at(self._start, max(size, self._BLOCK))
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        self.short |= len(found) < size
        return found

    def begin(self) -> bytes:
        """The first byte of the next block. Raises MediaCorruptError where the file has too many, large and small."""
        self._count = counted(self._count)
        return self.take(1)

    def ends(self, block: bytes) -> bool:
        """Whether nothing but the end follows. Some writers leave it out, some put zeros before it."""
        while block == b"\0":
            block = self.begin()
        return block in (b"", b"\x3b")

    def skip(self, size: int) -> None:
        self.take(size)

    def named(self, name: bytes) -> bool:
        size = self.take(1)
        return bool(size) and self.take(size[0]) == name

    def blocks(self) -> bytes:
        """Step over data blocks up to the empty one; the last that was not empty."""
        last = b""
        while (size := self.begin()) and size[0]:
            last = self.take(size[0])
        return last


def _png_chunks(source: Source) -> Iterator[tuple[bytes, int, int]]:
    """Name, place of the data and its size (PNG, 5.3)."""
    place, count = 8, 0
    while len(head := source.at(place, 8)) == 8:
        count = counted(count)
        size = int.from_bytes(head[:4], "big")
        yield head[4:], place + 8, size
        place += size + 12


def _png_frames(source: Source) -> int:
    for name, place, _ in _png_chunks(source):
        if name == b"acTL":
            return int.from_bytes(source.at(place, 4), "big")
        if name == b"IDAT":
            break
    return 1


def _png(source: Source) -> Walk:
    loops, complete, frames, said = 1, False, 0, 0
    for name, place, size in _png_chunks(source):
        frames += name == b"fcTL"
        if name == b"acTL":
            said, loops = (int.from_bytes(source.at(place + at, 4), "big") for at in (0, 4))
        complete = name == b"IEND" and place + size + 4 <= source.size
        if complete:
            break
    return Walk(complete, loops=loops, short=frames < said)


def _webp(source: Source) -> Walk:
    """https://developers.google.com/speed/webp/docs/riff_container."""
    end = 8 + int.from_bytes(source.at(4, 4), "little")
    place, count, loops, durations, size, alpha = 12, 0, 1, [], (0, 0), False
    while place + 8 <= min(end, source.size):
        count = counted(count)
        head = source.at(place, 24)
        length = int.from_bytes(head[4:8], "little")
        match head[:4]:
            case b"VP8X":
                alpha, size = bool(head[8] & 16), (1 + _three(head, 12), 1 + _three(head, 15))
            case b"ANIM":
                loops = int.from_bytes(head[12:14], "little")
            case b"ANMF" if place + 8 + length <= source.size:
                durations.append(shown_for(_three(head, 20)))
        place += 8 + length + length % 2
    return Walk(end <= source.size, bool(durations), loops, tuple(durations), size, alpha)


def whole_webp(source: Source) -> bytes:
    """A WebP up to the last chunk that is whole: libwebp reads nothing of one that breaks off."""
    data, place, end = source.at(0, source.size), 12, 12
    while end <= len(data):
        place = end
        size = int.from_bytes(data[place + 4 : place + 8], "little")
        end += 8 + size + size % 2
    return b"".join((data[:4], (place - 8).to_bytes(4, "little"), data[8:place]))


def _three(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 3], "little")
