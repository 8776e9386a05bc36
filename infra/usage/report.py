"""What a tenant's month amounts to: pure sums over its records, exact until the total is rounded to the cent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby

from shared.usage import pricing
from shared.usage.pricing import Prices
from shared.usage.record import Usage, decimal


@dataclass(frozen=True)
class Sums:
    """Of some records."""

    jobs: int
    frames: int
    pixels: int
    """Of all frames together."""
    work: Decimal
    wake: Decimal
    device: Mapping[str, Decimal]
    """Seconds by provider."""
    stored_bytes: int
    cost: Decimal
    """Unrounded; of one currency."""


@dataclass(frozen=True)
class Line:
    """Jobs that ended in the same way and asked for the same, by one price file."""

    currency: str
    prices: str
    outcome: str
    swapper: str
    enhancer: str
    upscaler: str
    sums: Sums


@dataclass(frozen=True)
class Report:
    tenant: str
    month: str
    records: tuple[Usage, ...]

    def lines(self) -> Iterator[Line]:
        for kind, group in groupby(sorted(self.records, key=_kind), key=_kind):
            yield Line(*kind, sums=sums(tuple(group)))

    def totals(self) -> dict[str, Decimal]:
        """To the cent, by currency."""
        currencies = sorted({one.bill.currency for one in self.records})
        return {
            currency: pricing.total(one.cost for one in self.records if one.bill.currency == currency)
            for currency in currencies
        }


def sums(records: tuple[Usage, ...]) -> Sums:
    device: dict[str, Decimal] = {}
    for one in records:
        for provider, seconds in one.measures.device.items():
            device[provider] = device.get(provider, Decimal(0)) + decimal(seconds)
    stages = [stage for one in records for stage in one.stages]
    return Sums(
        jobs=len(records),
        frames=sum(one.measures.frames for one in records),
        pixels=sum(one.measures.pixels * one.measures.frames for one in records),
        work=sum((decimal(stage.work) for stage in stages), Decimal(0)),
        wake=sum((decimal(stage.wake) for stage in stages), Decimal(0)),
        device=dict(sorted(device.items())),
        stored_bytes=sum(one.stored_bytes for one in records),
        cost=sum((one.cost for one in records), Decimal(0)),
    )


def repriced(record: Usage, prices: Prices) -> Usage:
    """The same job by another price file."""
    return replace(record, bill=prices.bill(record.measures))


def _kind(record: Usage) -> tuple[str, str, str, str, str, str]:
    bill, modes = record.bill, record.measures.modes
    return (bill.currency, bill.prices, record.measures.outcome, modes.swapper, modes.enhancer, modes.upscaler)
