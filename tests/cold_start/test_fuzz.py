"""Requests and events that somebody, or a broken client, might send: answered each, and nothing stays behind in memory.

`make fuzz` sends 10,000; here is as much of it as a test has time for.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.__main__ import GROWTH
from tests.fuzz.run import run

COUNT, WARM_UP = 1500, 500


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_server_error_no_hang_and_no_growth(tmp_path: Path) -> None:
    figures = run(tmp_path, COUNT, WARM_UP)
    assert figures.tally.count == COUNT
    assert figures.tally.faults == []
    assert max(figures.growth.values()) < GROWTH, figures
    statuses = {status for counter in figures.tally.statuses.values() for status in counter}
    assert statuses >= {200, 202, 204, 400, 401, 403, 404, 415, 422}, "the requests reach every part"
