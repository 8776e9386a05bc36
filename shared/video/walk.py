"""Containers walked from block to block, without a demuxer: is it animated, how often is it played, is the end there.

Pictures' data is stepped over, never unpacked. Knows the standard library and the error tree.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from shared.rejections import MediaCorruptError
from shared.video.source import Source

_SEGMENT = 0x18538067
_MOST = 10_000_000
"""Blocks of one file that are walked; nothing that a camera or an editor writes has so many."""


@dataclass(frozen=True)
class Walk:
    complete: bool
    """Whether every block ends within the file, and the last one is there where the format has such."""
    indexed: bool = True
    """Whether the block is there without which nothing of the file can be read."""
    loops: int = 1
    """As in Facts."""
    durations: tuple[int, ...] = ()
    """Of WebP: milliseconds of each picture."""
    size: tuple[int, int] = (0, 0)
    """Of WebP: width and height."""
    alpha: bool = False
    """Of WebP."""


def walked(container: str, source: Source) -> Walk:
    """`container` as in Facts. Raises MediaCorruptError for what has blocks without end."""
    match container:
        case "mp4" | "mov":
            return _boxes(source)
        case "mkv" | "webm":
            return Walk(_elements(source))
        case "gif":
            return _gif(source)
        case "webp":
            return _webp(source)
    return _png(source)


def is_animated(container: str, source: Source) -> bool:
    """Whether a GIF, WebP or PNG has more than one picture, as far as its blocks say so. Never raises for damage."""
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


def _counted(number: int) -> int:
    if number > _MOST:
        raise MediaCorruptError("The file has too many blocks.")
    return number + 1


def _boxes(source: Source) -> Walk:
    """ISO 14496-12, 4.2."""
    place, count, indexed = 0, 0, False
    while place + 8 <= source.size:
        count = _counted(count)
        head = source.at(place, 16)
        size = int.from_bytes(head[:4], "big")
        indexed |= head[4:8] in (b"moov", b"moof")
        if size == 0:
            return Walk(True, indexed)
        if size == 1:
            size = int.from_bytes(head[8:16], "big")
        if size < 8 or place + size > source.size:
            return Walk(False, indexed and (head[4:8] != b"moov" or place + 8 < source.size))
        place += size
    return Walk(True, indexed)


def _elements(source: Source) -> bool:
    """RFC 8794: whether the Segment and all in it end within the file."""
    place, count, segment = 0, 0, False
    while place < source.size:
        count = _counted(count)
        head = source.at(place, 16)
        length = _width(head, 0)
        name, (size, width) = int.from_bytes(head[:length], "big"), _vint(head, length)
        place += length + width
        if size is None:  # not known: its children follow
            if segment and name != 0x1F43B675:
                return True
        elif place + size > source.size:
            return False
        if name == _SEGMENT:
            segment = True
        elif size is not None:
            place += size
    return True


def _width(head: bytes, at: int) -> int:
    first = head[at] if at < len(head) else 0
    return max(9 - first.bit_length(), 1) if first else 8


def _vint(head: bytes, at: int) -> tuple[int | None, int]:
    """A size and how many bytes it took; None where all its bits are set: unknown."""
    width = _width(head, at)
    value = int.from_bytes(head[at : at + width], "big") & ((1 << 7 * width) - 1)
    return (None if value == (1 << 7 * width) - 1 else value), width


_IMAGE, _END = 0x2C, 0x3B


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
    while block := reader.take(1):
        if block[0] == _IMAGE:
            packed = reader.take(9)[8:9]
            reader.skip((_table(packed[0]) if packed else 0) + 1)
            reader.blocks()
            yield _IMAGE
        elif block[0] == 0x21:
            first = reader.take(1) == b"\xff" and reader.named(b"NETSCAPE2.0")
            data = reader.blocks()
            if first and len(data) >= 3 and data[0] == 1:
                again = struct.unpack("<H", data[1:3])[0]
                yield -(again + 1)
        else:
            if block[0] == _END:
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

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            self._start, self._at = self._start + self._at, 0
            self._data = self._source.at(self._start, max(size, self._BLOCK))
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        return found

    def skip(self, size: int) -> None:
        self.take(size)

    def named(self, name: bytes) -> bool:
        size = self.take(1)
        return bool(size) and self.take(size[0]) == name

    def blocks(self) -> bytes:
        """Step over data blocks up to the empty one; the last that was not empty."""
        last, count = b"", 0
        while (size := self.take(1)) and size[0]:
            count = _counted(count)
            last = self.take(size[0])
        return last


def _png_chunks(source: Source) -> Iterator[tuple[bytes, int, int]]:
    """Name, place of the data and its size (PNG, 5.3)."""
    place, count = 8, 0
    while len(head := source.at(place, 8)) == 8:
        count = _counted(count)
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
    loops, complete = 1, False
    for name, place, size in _png_chunks(source):
        if name == b"acTL":
            loops = int.from_bytes(source.at(place + 4, 4), "big")
        complete = name == b"IEND" and place + size + 4 <= source.size
        if complete:
            break
    return Walk(complete, loops=loops)


def _webp(source: Source) -> Walk:
    """https://developers.google.com/speed/webp/docs/riff_container."""
    end = 8 + int.from_bytes(source.at(4, 4), "little")
    place, count, loops, durations, size, alpha = 12, 0, 1, [], (0, 0), False
    while place + 8 <= min(end, source.size):
        count = _counted(count)
        head = source.at(place, 24)
        length = int.from_bytes(head[4:8], "little")
        match head[:4]:
            case b"VP8X":
                alpha, size = bool(head[8] & 16), (1 + _three(head, 12), 1 + _three(head, 15))
            case b"ANIM":
                loops = int.from_bytes(head[12:14], "little")
            case b"ANMF" if place + 8 + length <= source.size:
                durations.append(_three(head, 20))
        place += 8 + length + length % 2
    return Walk(end <= source.size, bool(durations), loops, tuple(durations), size, alpha)


def _three(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 3], "little")
