"""What walking from block to block of a container finds. Knows the error tree."""

from __future__ import annotations

from dataclasses import dataclass

from shared.rejections import MediaCorruptError

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
    """Of WebP: milliseconds that each picture is shown for."""
    size: tuple[int, int] = (0, 0)
    """Of WebP: width and height."""
    alpha: bool = False
    """Of WebP."""
    broken: bool = False
    """Of Matroska: whether something in the middle may not be there; demuxers step over it in silence."""
    short: bool = False
    """Whether the file says that there is more than it holds."""

    @property
    def lacking(self) -> bool:
        """Whether something that belongs to the file is missing."""
        return self.short or not self.complete


def counted(number: int) -> int:
    """The number of blocks so far, and one. Raises MediaCorruptError where they have no end."""
    if number > _MOST:
        raise MediaCorruptError("The file has too many blocks.")
    return number + 1
