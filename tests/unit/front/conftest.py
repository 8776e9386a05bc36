from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.front.api import Api


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)
