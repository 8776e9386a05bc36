"""Parameter sets: what a decoder must know before the first picture of a group, and how those of two encoders meet.

H.264's have numbers, so that ours get one which the source does not use: both then stand at the front of the file, and
each group names its own, as ISO/IEC 14496-15 wants it of `avc1`. HEVC's have numbers too, but x265 gives all of them
0, and AV1's have none: they stand before the groups that they are for. VP9 has none at all. Knows the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shared.video.units import Bits, payload, split_started, started

_SPS, _PPS = 7, 8
_NUMBERS = 32
"""H.264 counts sequence parameter sets from 0 to 31; x264 gives the picture parameter set the same number."""
_MOST = 2**13
"""Bytes that are written before every group: more is no encoder's, and would make a long video out of a short file."""
SEQUENCE_HEADER = 1
"""Type of an open bitstream unit of AV1, 5.3.1."""


@dataclass(frozen=True)
class Sets:
    """Of one H.264 stream: sequence and picture parameter sets by number."""

    sequence: dict[int, bytes]
    picture: dict[int, bytes]

    def free(self) -> int | None:
        """A number that neither kind uses."""
        taken = {*self.sequence, *self.picture}
        return next((number for number in range(_NUMBERS) if number not in taken), None)

    def agrees(self, other: Sets) -> bool:
        """Whether no number means two things."""
        pairs = ((self.sequence, other.sequence), (self.picture, other.picture))
        return all(left.get(number, unit) == unit for left, right in pairs for number, unit in right.items())

    def __or__(self, other: Sets) -> Sets:
        return Sets(self.sequence | other.sequence, self.picture | other.picture)

    def written(self) -> bytes:
        """With start codes, from which FFmpeg makes a container's record; it takes profile and level of the first."""
        ranked = sorted(self.sequence.values(), key=lambda unit: (unit[1], unit[3]), reverse=True)
        return started([*ranked, *self.picture.values()])


def h264(units: Iterable[bytes]) -> Sets:
    """The parameter sets among `units`. Raises ValueError for broken ones."""
    sets = Sets({}, {})
    try:
        for unit in units:
            if unit[0] & 31 == _SPS:
                sets.sequence[Bits(payload(unit)[4:]).golomb()] = unit
            elif unit[0] & 31 == _PPS:
                sets.picture[Bits(payload(unit)[1:]).golomb()] = unit
    except IndexError as error:
        raise ValueError("A parameter set breaks off.") from error
    return sets


def units_of(codec: str, record: bytes) -> list[bytes]:
    """Parameter sets in a container's record (avcC, hvcC) or with start codes; `codec`: `h264` or `h265`.

    Raises ValueError where it is no such record, or its lengths are not of four bytes.
    """
    if record[:3] == b"\0\0\1" or record[:4] == b"\0\0\0\1":
        return list(split_started(record))
    try:
        return list(_avc(record) if codec == "h264" else _hevc(record))
    except IndexError as error:
        raise ValueError("The record of parameter sets breaks off.") from error


def repeated(codec: str, record: bytes) -> list[bytes]:
    """What of a record is written before every group, as `units_of`; of AV1 its sequence header.

    Raises ValueError as well where that is too much.
    """
    if len(record) > _MOST:
        raise ValueError("The record of parameter sets is too long to be repeated.")
    if codec in ("h264", "h265"):
        return units_of(codec, record)
    return [record[4:]] if codec == "av1" else []


def _avc(record: bytes) -> Iterator[bytes]:
    """ISO/IEC 14496-15, 5.3.3.1."""
    if record[0] != 1 or record[4] & 3 != 3:
        raise ValueError("No record of H.264 with lengths of four bytes.")
    at = 5
    for mask in (31, 255):
        count, at = record[at] & mask, at + 1
        for _ in range(count):
            unit, at = _sized(record, at)
            yield unit


def _hevc(record: bytes) -> Iterator[bytes]:
    """ISO/IEC 14496-15, 8.3.3.1."""
    if record[0] != 1 or record[21] & 3 != 3:
        raise ValueError("No record of HEVC with lengths of four bytes.")
    at = 23
    for _ in range(record[22]):
        count, at = int.from_bytes(record[at + 1 : at + 3], "big"), at + 3
        for _ in range(count):
            unit, at = _sized(record, at)
            yield unit


def _sized(record: bytes, at: int) -> tuple[bytes, int]:
    end = at + 2 + int.from_bytes(record[at : at + 2], "big")
    if end > len(record) or end == at + 2:
        raise IndexError
    return record[at + 2 : end], end


def begins_with_header(packet: bytes) -> bool:
    """Whether an AV1 packet tells its sequence header before its pictures."""
    return bool(packet) and packet[0] >> 3 & 15 == SEQUENCE_HEADER
