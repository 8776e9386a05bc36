"""A folder that another user can reach (pytest's own are closed to others)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def readable() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="wakeswap-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)
