"""Stand-ins of the session, light and heavy."""

from __future__ import annotations

import pytest

from tests.standins.world import StandIns


@pytest.fixture(scope="session")
def standins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    return StandIns(tmp_path_factory.mktemp("standins"))
