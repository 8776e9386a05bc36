"""Cost by the price file: the formula, worked out anew in fractions; the file, refused wherever it is wrong."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from shared.errors import ConfigError
from shared.usage import pricing
from shared.usage.record import Measures, Modes
from tests.unit.usage import support

FILE: dict[str, Any] = tomllib.loads(pricing.STANDARD.read_text())


def step(name: str, size: int) -> Fraction:
    for entry in FILE[name]:
        if "up_to" not in entry or size <= int(entry["up_to"]):
            return Fraction(entry["factor"])
    raise AssertionError


def named(table: str, name: str) -> Fraction:
    return Fraction(FILE[table].get(name or "none", FILE[table]["other"]))


def device(job: Measures) -> Fraction:
    return sum((Fraction(repr(s)) * named("device_seconds", where) for where, s in job.device.items()), Fraction(0))


def exact(job: Measures) -> Fraction:
    """The formula of docs/usage.md, without any rounding."""
    cost = device(job)
    if job.outcome == "completed":
        cost *= step("resolutions", job.pixels) * step("boosts", job.modes.boost)
        cost *= named("swappers", job.modes.swapper) * named("enhancers", job.modes.enhancer)
        cost *= named("upscalers", job.modes.upscaler)
    return cost * Fraction(FILE["outcomes"][job.outcome])


def half_up(value: Fraction, places: int) -> Fraction:
    scaled = value * 10**places
    return Fraction((scaled + Fraction(1, 2)).__floor__(), 10**places)


@given(support.measures)
def test_a_cost_is_the_formula_rounded_once_to_a_billionth(job: Measures) -> None:
    bill = pricing.read().bill(job)
    assert Fraction(bill.cost) == half_up(exact(job), 9)
    assert bill.prices == FILE["version"]
    shown = Fraction(bill.resolution) * Fraction(bill.share)
    for weight in bill.weights.values():
        shown *= Fraction(str(weight))
    assert half_up(shown * device(job), 9) == Fraction(bill.cost), "the record says what made its cost"


@given(support.measures)
def test_a_frame_more_costs_what_each_of_the_others_does(job: Measures) -> None:
    """Frames times the cost of one: the record says both, and as many frames more, at the same time each, as much."""
    prices = pricing.read()
    frames = max(job.frames, 1)
    bill = prices.bill(job)
    assert bill.frames == frames
    assert abs(Fraction(bill.frame) * frames - device(job)) <= Fraction(frames, 2 * 10**12)
    twice = Measures(**{**vars(job), "frames": 2 * frames, "device": {k: 2 * v for k, v in job.device.items()}})  # type: ignore[operator]
    assert prices.bill(twice).frame == bill.frame
    assert abs(Fraction(prices.bill(twice).cost) - 2 * Fraction(bill.cost)) <= Fraction(3, 2 * 10**9)


@pytest.mark.parametrize(("pixels", "factor"), [(0, "1"), (921600, "1"), (921601, "1.25"), (10**9, "2.5")])
def test_a_step_holds_up_to_its_own_size(pixels: int, factor: str) -> None:
    job = Measures("completed", 1, pixels, Modes("mesh"), {"cpu": 1.0})
    assert pricing.read().bill(job).resolution == factor


def test_halves_are_rounded_away_from_zero(tmp_path: Path) -> None:
    changed = pricing.STANDARD.read_text().replace('cpu = "0.00004"', 'cpu = "0.0000000025"')
    (tmp_path / "p.toml").write_text(changed)
    job = Measures("rejected", 1, 0, Modes(), {"cpu": 1.0})
    assert pricing.read(str(tmp_path / "p.toml")).bill(job).cost == "0.000000003"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version = "2026-12"', "", "version is missing"),
        ('version = "2026-12"', 'version = ""', "version is not letters and digits"),
        ('version = "2026-12"', 'version = "=1+1"', "version is not letters and digits"),
        ('version = "2026-12"', 'version = "Q4 2026"', "version is not letters and digits"),
        ('currency = "EUR"', 'currency = "euro"', "currency is not three capital letters"),
        ('version = "2026-12"', 'versoin = "2026-12"', "versoin is not known"),
        ('cpu = "0.00004"', "cpu = 0.00004", "device_seconds.cpu is not a decimal in quotes"),
        ('cpu = "0.00004"', 'cpu = "-1"', "device_seconds.cpu"),
        ('cpu = "0.00004"', 'cpu = "NaN"', "device_seconds.cpu"),
        ('cpu = "0.00004"', 'cpu = "4e9"', "device_seconds.cpu"),
        ('cuda = "0.0009"', 'cudda = "0.0009"', "device_seconds.cudda is not known"),
        ('failed = "0"', "", "outcomes.failed"),
        ('[swappers]\nmesh = "1"\nother = "1.5"', '[swappers]\nmesh = "1"', "swappers.other"),
        ('up_to = "2073600"', 'up_to = "921600"', "resolutions[1].up_to is not above"),
        ('factor = "2.5"', 'factor = "2.5"\nup_to = "9"', "resolutions[3].up_to is not known"),
        ('up_to = "256"\n', "", "boosts[0].up_to"),
        ("[outcomes]", "[outcomes", "cannot be read"),
    ],
)
def test_a_price_file_that_is_wrong_is_refused_by_the_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = pricing.STANDARD.read_text()
    assert old in text
    path = tmp_path / "p.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        pricing.read(str(path))
    assert said in caught.value.detail
    assert str(tmp_path) not in caught.value.detail


def test_a_price_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        pricing.read(str(tmp_path / "none.toml"))
