"""Boxes of MP4 and elements of Matroska changed in a file's bytes, as broken writers and bad tools leave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

HOLDING = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"moof", b"traf", b"mvex")


def listed(data: bytes) -> list[tuple[bytes, bytes]]:
    """Names and bodies of the boxes that stand one after the other."""
    found, at = [], 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big") or len(data) - at
        found.append((data[at + 4 : at + 8], data[at + 8 : at + size]))
        at += size
    return found


def written(boxes: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join((8 + len(body)).to_bytes(4, "big") + name + body for name, body in boxes)


def changed(data: bytes, path: Sequence[bytes], change: Callable[[bytes], bytes], kind: bytes = b"") -> bytes:
    """The body of each box of that path through `change`; `kind`: of tracks of that handler only."""
    found = []
    for name, body in listed(data):
        new = body
        if name == path[0] and not (kind and name == b"trak" and kind not in body[: body.index(b"minf")]):
            new = change(body) if len(path) == 1 else changed(body, path[1:], change, kind)
        found.append((name, new))
    return written(found)


def number(at: int, alter: Callable[[int], int], width: int = 4) -> Callable[[bytes], bytes]:
    def change(body: bytes) -> bytes:
        value = alter(int.from_bytes(body[at : at + width], "big"))
        return body[:at] + value.to_bytes(width, "big") + body[at + width :]

    return change


def element(data: bytes, name: bytes) -> tuple[int, int, int]:
    """Of the first element of that name: its place, that of its data, its size."""
    place = data.index(name)
    first = data[place + len(name)]
    width = 9 - first.bit_length()
    size = int.from_bytes(data[place + len(name) : place + len(name) + width], "big") & ((1 << 7 * width) - 1)
    return place, place + len(name) + width, size


def unsized(data: bytes, name: bytes) -> bytes:
    """An element whose size is not known."""
    place, begin, _ = element(data, name)
    width = begin - place - len(name)
    unknown = ((1 << 8 - width) | ((1 << 8 - width) - 1)).to_bytes(1, "big") + b"\xff" * (width - 1)
    return data[: place + len(name)] + unknown + data[begin:]
