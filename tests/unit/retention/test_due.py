"""What is due of a job, as a table: which files are how old, in hours."""

from __future__ import annotations

import pytest

from infra.retention.due import ABANDONED, HOUR, INPUTS, RECORDS, RESULT, STRAY, Terms, due

NOW = 1_800_000_000.0
TERMS = Terms(24 * HOUR, 720 * HOUR, 336 * HOUR)
LONG = {"job.json": 800.0, "input/source-0": 800.0, "detect/landmarks.npz": 800.0}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({**LONG, "outcome.json": 23.9}, ()),
        ({**LONG, "outcome.json": 24.0}, (INPUTS,)),
        ({**LONG, "cancelled.json": 24.0}, (INPUTS,)),
        ({"job.json": 30.0, "outcome.json": 25.0}, (INPUTS,)),
        ({"job.json": 30.0, "outcome.json": 25.0, "swept.json": 1.0}, ()),
        ({"job.json": 30.0, "outcome.json": 25.0, "swept.json": 1.0, "swap/pixels.npy": 0.5}, (INPUTS,)),
        ({"job.json": 90.0, "outcome.json": 25.0, "swept.json": 40.0}, (INPUTS,)),
        ({"job.json": 90.0, "outcome.json": 80.0, "cancelled.json": 2.0}, ()),
        ({"outcome.json": 720.0}, (INPUTS, RESULT, RECORDS)),
        ({"outcome.json": 720.0, "swept.json": 600.0}, (RESULT, RECORDS)),
        (LONG, (ABANDONED,)),
        ({**LONG, "swap/work.0.json": 335.0}, ()),
        ({"job.json": 0.1}, ()),
        ({"input/source-0": 23.0}, ()),
        ({"input/source-0": 25.0}, (STRAY,)),
        ({"input/source-0": 400.0, "input/target-0": 23.0}, ()),
        ({"notify/work.0.json": 335.0}, ()),
        ({"notify/work.0.json": 337.0}, (STRAY,)),
    ],
)
def test_what_is_due(files: dict[str, float], expected: tuple[str, ...]) -> None:
    assert due({name: NOW - age * HOUR for name, age in files.items()}, TERMS, NOW) == expected


def test_a_result_may_go_before_the_pictures_it_came_from() -> None:
    terms = Terms(48 * HOUR, 24 * HOUR, 336 * HOUR)
    files = {"job.json": NOW - 40 * HOUR, "outcome.json": NOW - 30 * HOUR}
    assert due(files, terms, NOW) == (RESULT,)
    assert due(files, terms, NOW + 18 * HOUR) == (INPUTS, RESULT, RECORDS)
