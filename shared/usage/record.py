"""The usage record: what one job used and what it costs. Knows nothing but its own shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from shared import records
from shared.errors import JsonValue

OUTCOMES = ("completed", "rejected", "failed")
_COST = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_WORD = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.:+-]{0,127})?")
"""Of what stands in a report: no cell of a spreadsheet begins with what it would reckon out."""


@dataclass(frozen=True)
class Modes:
    """What the job's options asked for, as far as it has a weight."""

    swapper: str = ""
    boost: int = 0
    enhancer: str = ""
    upscaler: str = ""


@dataclass(frozen=True)
class StageUse:
    """One finished piece of work of the job: one event at one stage."""

    stage: str
    work: float
    """Seconds from taking the event to the reply, of the attempt that finished."""
    wake: float
    """Seconds that the process took to wake for it; 0 when it was awake."""
    device: dict[str, JsonValue] = field(default_factory=dict)
    """Seconds that models ran in that attempt, by provider."""
    segment: int | None = None
    """Of a video, which part of it; None: the work was on the whole."""
    frames: int = 0
    """That the work's result has; 0 where it has none of its own."""


@dataclass(frozen=True)
class Bill:
    """The cost, and what of the price file made it."""

    prices: str
    """The price file's version."""
    currency: str
    cost: str
    """Decimal, to a billionth of the currency: a picture may cost some thousandths of a cent."""
    frames: int = 1
    """As in Measures, and 1 for a job of which no frame was made: what the price is made of."""
    frame: str = "0"
    """Decimal: GPU time x price of one frame, rounded to 12 digits for whoever looks; the cost is made unrounded."""
    resolution: str = "1"
    weights: dict[str, JsonValue] = field(default_factory=dict)
    """By mode; empty for a job that made no picture. The mode weight is their product."""
    share: str = "1"
    """What is billed of a job that ended so."""


@dataclass(frozen=True)
class Measures:
    """What a bill is made from."""

    outcome: str
    """`completed`, `rejected` or `failed`."""
    frames: int
    """1 for a picture. Of a video that was made its frames; of one that was not, those of the parts that were."""
    pixels: int
    """Of the picture or of one frame of the video that was made, before it was reduced for the caller; 0 where none
    was."""
    modes: Modes
    device: dict[str, JsonValue]
    """Seconds that models ran for the job, by provider."""
    media: str = "image"
    """`image` or `video`."""
    seconds: float = 0.0
    """Of the video that was made."""


@dataclass(frozen=True)
class Usage:
    """usage/<month>/<job>.json."""

    tenant: str
    job: str
    accepted: str
    """RFC 3339; its month is the record's."""
    ended: str
    """RFC 3339: when the event that tells the end was made."""
    code: str
    """Of a rejection or a failure."""
    priority: str
    measures: Measures
    stages: tuple[StageUse, ...]
    """In the order in which they began."""
    stored_bytes: int
    """Of the job's folder and its results when it was metered, without records."""
    bill: Bill

    @property
    def cost(self) -> Decimal:
        return Decimal(self.bill.cost)


def read(data: bytes) -> Usage:
    """Raises ValueError for what is no usage record, or has anything in it that no sum can be made of."""
    usage = records.read(Usage, records.loads(data))
    measures, bill = usage.measures, usage.bill
    summed((measures.device, *(stage.device for stage in usage.stages)))
    for seconds in (measures.seconds, *(time for stage in usage.stages for time in (stage.work, stage.wake))):
        decimal(seconds)
    if measures.outcome not in OUTCOMES:
        raise ValueError("the outcome is none")
    counts = (measures.frames, measures.pixels, usage.stored_bytes, *(stage.frames for stage in usage.stages))
    if not all(0 <= count < 10**18 for count in counts):
        raise ValueError("a count is none")
    if not _COST.fullmatch(bill.cost):
        raise ValueError("the cost is no decimal")
    modes = (measures.modes.swapper, measures.modes.enhancer, measures.modes.upscaler)
    words = (usage.tenant, usage.job, usage.accepted, usage.ended, usage.code, usage.priority, measures.media, *modes)
    if not all(_WORD.fullmatch(word) for word in (*words, bill.prices, bill.currency)):
        raise ValueError("a name is none")
    return usage


def decimal(seconds: JsonValue) -> Decimal:
    """As it is written in the record. Raises ValueError for what is no number of seconds."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < 10**9:
        raise ValueError("not a number of seconds")
    return Decimal(repr(seconds))


def summed(parts: tuple[Mapping[str, JsonValue], ...]) -> dict[str, JsonValue]:
    """Seconds by provider, added without binary rounding."""
    found: dict[str, Decimal] = {}
    for part in parts:
        for provider, seconds in part.items():
            found[provider] = found.get(provider, Decimal(0)) + decimal(seconds)
    return {provider: float(seconds) for provider, seconds in sorted(found.items())}
