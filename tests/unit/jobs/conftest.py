from __future__ import annotations

from pathlib import Path

import pytest

from shared.storage.local import LocalStore
from tests.unit.jobs.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(LocalStore(tmp_path / "objects"))
