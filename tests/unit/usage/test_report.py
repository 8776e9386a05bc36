"""The report: totals that are the sum of the records, in every format, and what a command answers."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.usage import views
from infra.usage.cli import main
from infra.usage.report import Report, repriced
from shared import records
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.usage import pricing
from shared.usage.record import Measures, Usage
from tests.unit.usage import support
from tests.unit.usage.test_pricing import half_up

MONTH = "2026-11"
costs = st.integers(0, 10**16).map(lambda number: str(Decimal(number).scaleb(-9)))


@given(st.lists(st.tuples(costs, st.sampled_from(["EUR", "CHF"])), max_size=40))
def test_totals_agree_with_the_records_to_the_cent(bills: list[tuple[str, str]]) -> None:
    made = tuple(support.billed(number, format(Decimal(c), "f"), in_) for number, (c, in_) in enumerate(bills))
    totals = Report("demo", MONTH, made).totals()
    assert totals.keys() == {currency for _, currency in bills}
    for currency, total in totals.items():
        exact = sum((Fraction(one.bill.cost) for one in made if one.bill.currency == currency), Fraction(0))
        assert Fraction(total) == half_up(exact, 2)
        assert total.as_tuple().exponent == -2
    assert Report("demo", MONTH, made[::-1]).totals() == totals, "in whatever order"


@given(st.lists(support.measures, max_size=15))
def test_every_format_says_the_same(jobs: list[Measures]) -> None:
    made = tuple(support.usage(number, job) for number, job in enumerate(jobs))
    assert tuple(records.read(Usage, records.loads(records.dumps(records.write(one)))) for one in made) == made
    report = Report("demo", MONTH, made)
    document = json.loads(views.json_text(report))
    rows = list(csv.DictReader(io.StringIO(views.csv_lines(report))))
    total = half_up(sum((Fraction(one.bill.cost) for one in made), Fraction(0)), 2)
    assert half_up(sum((Fraction(row["cost"]) for row in rows), Fraction(0)), 2) == total
    assert half_up(sum((Fraction(line["cost"]) for line in document["lines"]), Fraction(0)), 2) == total
    if made:
        assert Fraction(document["totals"]["EUR"]) == total
        assert views.table(report).splitlines()[-1] == f"total  {document['totals']['EUR']} EUR"
    assert document["sums"]["jobs"] == len(rows) == len(made) == sum(line["jobs"] for line in document["lines"])
    device = sum(
        (Fraction(row[f"device_{name}"]) for row in rows for name in (*pricing.PROVIDERS, "other")), Fraction(0)
    )
    measured = sum((Fraction(repr(s)) for job in jobs for s in job.device.values()), Fraction(0))
    assert device == measured
    assert abs(sum(document["sums"]["device_seconds"].values()) - float(measured)) < 1e-3


def test_another_price_file_changes_the_bill_and_nothing_that_was_measured(tmp_path: Path) -> None:
    text = pricing.STANDARD.read_text().replace('cpu = "0.00004"', 'cpu = "0.00008"').replace("2026-12", "new")
    (tmp_path / "new.toml").write_text(text)
    job = Measures("completed", 1, 10, support.Modes("mesh"), {"cpu": 100.0})
    before = support.usage(1, job)
    after = repriced(before, pricing.read(str(tmp_path / "new.toml")))
    assert after.cost == 2 * before.cost
    assert (after.bill.prices, after.measures) == ("new", before.measures)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path)
    for number in range(3):
        one = support.usage(number, Measures("completed", 1, 10, support.Modes("mesh"), {"cpu": 1000.0}))
        store.put(keys.usage("demo", MONTH, one.job), records.dumps(records.write(one)))
    return store


def report(tmp_path: Path, *more: str, month: str = MONTH, tenant: str = "demo") -> int:
    return main(["report", "--tenant", tenant, "--month", month, "--store", f"file:{tmp_path}", *more], {})


def test_the_command_shows_a_month(store: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "demo, 2026-11: 3 jobs"
    lines = [" ".join(line.split()) for line in shown]
    assert lines[1] == "outcome swapper enhancer upscaler prices jobs frames megapixels device s work s wake s cost"
    assert lines[2] == "completed mesh - - 2026-12 3 3 0.0 3000.00 0.68 4.50 0.12 EUR"
    assert shown[3:] == ["total  0.12 EUR"]


def test_a_month_without_jobs_costs_nothing(
    store: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(tmp_path, month="2026-10") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "total  0.00"
    assert report(tmp_path, "--format", "json", tenant="other") == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == []


@pytest.mark.parametrize("data", [b"", b"{}", b'{"tenant": "demo"', None])
def test_a_record_that_cannot_be_read_is_named_and_fails_the_command(
    store: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes | None
) -> None:
    key = keys.usage("demo", MONTH, "job-00000001")
    store.put(key, store.get(key)[0].replace(b'"cost":"0.04"', b'"cost":"much"') if data is None else data)
    assert report(tmp_path, "--format", "json") == 1
    told = capsys.readouterr()
    assert key in told.err
    assert len(json.loads(told.out)["jobs"]) == 2


def kept(number: int, **changes: Any) -> bytes:
    one = support.usage(number, Measures("completed", 1, 10, support.Modes("mesh"), {"cpu": 1000.0}))
    return records.dumps({**json.loads(records.dumps(records.write(one))), **changes})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("job-00000009", {"tenant": "other"}),
        ("job-00000009", {"accepted": "2026-12-01T00:00:00.000Z"}),
        ("job-00000009", {"accepted": "2026-10-31T23:59:59.999Z"}),
        ("job-00000009", {"job": "job-00000001"}),
        ("job-00000009.copy", {}),
        ("more/job-00000009", {}),
    ],
    ids=["tenant", "next month", "month before", "other job", "copy", "folder"],
)
def test_a_record_that_is_out_of_place_is_named_and_not_added(
    store: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, changes: dict[str, Any]
) -> None:
    key = keys.usage("demo", MONTH) + f"{name}.json"
    store.put(key, kept(9, **changes))
    assert report(tmp_path, "--format", "json") == 1
    told = capsys.readouterr()
    assert key in told.err
    assert (len(json.loads(told.out)["jobs"]), json.loads(told.out)["totals"]) == (3, {"EUR": "0.12"})


@pytest.mark.parametrize(
    "change",
    [
        {"stored_bytes": -1},
        {"stored_bytes": 10**30},
        {"code": "=HYPERLINK(1)"},
        {"code": "a\r\nb"},
        {"measures": {"frames": -100}},
        {"measures": {"outcome": "free"}},
        {"measures": {"device": {"cpu": -5}}},
        {"measures": {"device": {"cpu": "1"}}},
        {"measures": {"seconds": -1.0}},
        {"measures": {"modes": {"swapper": "@SUM(A1)"}}},
        {"bill": {"cost": "-0.04"}},
        {"bill": {"cost": "0.04e3"}},
        {"bill": {"cost": "NaN"}},
        {"bill": {"cost": "9" * 400}},
        {"bill": {"currency": "\x1b[2J"}},
        {"stages": [{"stage": "swap", "work": -1.0, "wake": 0.0}]},
    ],
    ids=str,
)
def test_a_record_that_no_sum_can_be_made_of_is_damaged_in_every_format(
    store: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any]
) -> None:
    whole = json.loads(kept(9))
    merged = {name: {**whole[name], **value} if isinstance(value, dict) else value for name, value in change.items()}
    key = keys.usage("demo", MONTH, "job-00000009")
    store.put(key, kept(9, **merged))
    for more in ((), ("--format", "csv"), ("--format", "json"), ("--prices", str(pricing.STANDARD))):
        assert report(tmp_path, *more) == 1
        told = capsys.readouterr()
        assert f"cannot be read: {key}" in told.err
        assert "job-00000009" not in told.out
    assert told.out.endswith("total  0.12 EUR\n")


def test_a_month_ends_where_the_next_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By when a job was accepted, to the millisecond, in UTC; when it ended does not matter."""
    store = LocalStore(tmp_path)
    borders = {"2026-11": "2026-11-30T23:59:59.999Z", "2026-12": "2026-12-01T00:00:00.000Z"}
    for number, (month, accepted) in enumerate(borders.items()):
        name = f"job-{number:08}"
        store.put(keys.usage("demo", month, name), kept(number, accepted=accepted, ended="2027-01-01T00:00:00.000Z"))
    for number, month in enumerate(borders):
        assert report(tmp_path, "--format", "json", month=month) == 0
        (job,) = json.loads(capsys.readouterr().out)["jobs"]
        assert job["job"] == f"job-{number:08}"


def test_prices_that_change_in_mid_month_hold_from_then_on(
    store: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each record keeps what it was billed by; another currency has a total of its own."""
    text = pricing.STANDARD.read_text().replace('cpu = "0.00004"', 'cpu = "0.00007"')
    for number, (version, currency) in enumerate((("2026-12b", "EUR"), ("2026-12c", "CHF")), 3):
        path = tmp_path / f"{version}.toml"
        path.write_text(text.replace('"2026-12"', f'"{version}"').replace('"EUR"', f'"{currency}"'))
        one = support.usage(number, Measures("completed", 1, 10, support.Modes("mesh"), {"cpu": 1000.0}))
        one = repriced(one, pricing.read(str(path)))
        store.put(keys.usage("demo", MONTH, one.job), records.dumps(records.write(one)))
    assert report(tmp_path) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert [(line.split()[4], line.split()[-2:]) for line in shown[2:5]] == [
        ("2026-12c", ["0.07", "CHF"]),
        ("2026-12", ["0.12", "EUR"]),
        ("2026-12b", ["0.07", "EUR"]),
    ]
    assert shown[5:] == ["total 0.07 CHF", "total 0.19 EUR"]


def test_what_cannot_be_asked(store: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for month in ("2026-13", "2026-1", "november", "../.."):
        with pytest.raises(SystemExit):
            report(tmp_path, month=month)
    assert report(tmp_path, tenant="../other") == 1
    assert report(tmp_path, "--prices", str(tmp_path / "none.toml")) == 2
    assert "none.toml" in capsys.readouterr().err
