"""Timestamps of packets. Knows the standard library only."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from itertools import accumulate


def decode_times(times: Sequence[int]) -> list[int]:
    """When each packet is decoded: strictly rising, never after it is shown; `times`: pts in the order of decoding.

    They are the times of showing in their order, moved back by the least that will do. Ticks.
    """
    rising = list(accumulate(sorted(times), lambda before, at: max(at, before + 1)))
    delay = max((at - shown for at, shown in zip(rising, times, strict=True)), default=0)
    return [at - delay for at in rising]


def spread(times: MutableSequence[int]) -> None:
    """Make times of showing differ, in place: of equal ones each is a tick later than the one before in `times`."""
    if len(set(times)) == len(times):
        return
    last: int | None = None
    for index in sorted(range(len(times)), key=times.__getitem__):
        if last is not None and times[index] <= last:
            times[index] = last + 1
        last = times[index]
