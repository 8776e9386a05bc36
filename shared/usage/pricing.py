"""The price file: read, checked, and a job's cost by it. Numbers are decimals from the file's text to the total.

    cost = frames x resolution factor x mode weight x GPU time x price

GPU time is the device time of one frame: what was measured for the whole job over its frames, so that a video of a
hundred frames costs a hundred times what one of them does. GPU time x price is summed over where models ran. A cost is
rounded to a billionth of the currency; a total is the exact sum of its records' costs, rounded once, to the cent. Both
round half away from zero, as invoices do.
Knows the error tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path

from shared.errors import ConfigError, JsonValue
from shared.usage.ladder import Ladder, PriceError, Table, number, part, refuse_unknown, text
from shared.usage.record import OUTCOMES, Bill, Measures, decimal

STANDARD = Path(__file__).parent / "prices/2026-12.toml"
PROVIDERS = ("cpu", "cuda", "tensorrt")
OTHER, NONE = "other", "none"
_COST = Decimal("0.000000001")
_CENT = Decimal("0.01")
_FRAME = Decimal("0.000000000001")
_DIGITS = 200
"""Of a sum before it is rounded: more than all costs have together, so that only the rounding rounds."""


@dataclass(frozen=True)
class Prices:
    version: str
    currency: str
    """ISO 4217; one with cents."""
    outcomes: Table
    device_seconds: Table
    swappers: Table
    enhancers: Table
    upscalers: Table
    resolutions: Ladder
    boosts: Ladder

    def bill(self, job: Measures) -> Bill:
        """A job that made nothing has no resolution and no mode: its device time is billed as it is."""
        made = job.outcome == "completed"
        resolution = self.resolutions.factor(job.pixels) if made else Decimal(1)
        weights = self._weights(job) if made else {}
        share = self.outcomes[job.outcome]
        frames = max(job.frames, 1)
        frame = self._device(job) / frames
        cost = frames * frame * Fraction(resolution) * Fraction(share)
        for weight in weights.values():
            cost *= Fraction(weight)
        shown: dict[str, JsonValue] = {name: plain(weight) for name, weight in weights.items()}
        return Bill(
            prices=self.version,
            currency=self.currency,
            cost=plain(_rounded(cost, _COST)),
            frames=frames,
            frame=plain(_rounded(frame, _FRAME)),
            resolution=plain(resolution),
            weights=shown,
            share=plain(share),
        )

    def _device(self, job: Measures) -> Fraction:
        """GPU time x price, of all frames."""
        prices = (Fraction(decimal(s)) * Fraction(self._price(name)) for name, s in job.device.items())
        return sum(prices, Fraction(0))

    def _weights(self, job: Measures) -> dict[str, Decimal]:
        modes = job.modes
        return {
            "swapper": _named(self.swappers, modes.swapper),
            "boost": self.boosts.factor(modes.boost),
            "enhancer": _named(self.enhancers, modes.enhancer),
            "upscaler": _named(self.upscalers, modes.upscaler),
        }

    def _price(self, provider: str) -> Decimal:
        return _named(self.device_seconds, provider)


def _rounded(value: Fraction, unit: Decimal) -> Decimal:
    """Half away from zero, to a decimal unit; `value` is not negative."""
    steps = (value / Fraction(unit) + Fraction(1, 2)).__floor__()
    return Decimal(f"{steps}e{unit.as_tuple().exponent}")  # a product would be rounded to the context's digits


def total(costs: Iterable[Decimal]) -> Decimal:
    """Of one currency, to the cent."""
    with localcontext() as context:
        context.prec = _DIGITS
        return sum(costs, Decimal(0)).quantize(_CENT, ROUND_HALF_UP)


@cache
def read(path: str = "") -> Prices:
    """A price file, by default the product's own. Raises ConfigError naming the file and the field."""
    import tomllib  # not for the stages that never ask for prices

    file = Path(path) if path else STANDARD
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The price file {file.name} cannot be read: {error}", context={"field": "prices"}) from error
    try:
        return _prices(document)
    except PriceError as error:
        raise ConfigError(f"The price file {file.name}: {error}.", context={"field": "prices"}) from error


def plain(value: Decimal) -> str:
    """Without an exponent and without noughts at the end."""
    shown = format(value, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _prices(document: Mapping[str, object]) -> Prices:
    """Raises PriceError naming the field."""
    refuse_unknown(document, Prices.__dataclass_fields__, "")
    return Prices(
        version=text(document, "version", r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "letters and digits, with - _ . between"),
        currency=text(document, "currency", "[A-Z]{3}", "three capital letters (ISO 4217)"),
        outcomes=_table(document, "outcomes", OUTCOMES, closed=True),
        device_seconds=_table(document, "device_seconds", (*PROVIDERS, OTHER), closed=True),
        swappers=_table(document, "swappers", (OTHER,)),
        enhancers=_table(document, "enhancers", (NONE, OTHER)),
        upscalers=_table(document, "upscalers", (NONE, OTHER)),
        resolutions=Ladder.read(document, "resolutions"),
        boosts=Ladder.read(document, "boosts"),
    )


def _table(document: Mapping[str, object], name: str, required: Sequence[str], *, closed: bool = False) -> Table:
    """`closed`: it holds what is required and nothing else."""
    entries = part(document, name, dict)
    if closed:
        refuse_unknown(entries, required, f"{name}.")
    return {key: number(entries, key, f"{name}.") for key in (*required, *entries)}


def _named(table: Table, name: str) -> Decimal:
    key = name or NONE
    return table[key] if key in table else table[OTHER]
