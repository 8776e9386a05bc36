"""What is written of a segment does not depend on what was in memory before: done again, it is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.video.made import Recipe, make

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import hashlib, sys
from pathlib import Path
from tests.unit.video.chain import through
path, folder, codec = map(str, sys.argv[1:])
made = through(Path(path), Path(folder), container="mkv", codec=codec, seconds=2.0)
print(hashlib.sha256((Path(folder) / "clip.0.mkv").read_bytes()).hexdigest())
"""


@pytest.mark.parametrize("codec", ["h264", "h265", "av1", "vp9"])
def test_other_memory_makes_no_other_clip(tmp_path: Path, codec: str) -> None:
    source = make(tmp_path / "source.mp4", Recipe(size=(192, 192), ticks=tuple(range(0, 25 * 512, 512)), keys=25))
    found = set()
    for filling in ("0", "85", "170"):
        folder = tmp_path / filling
        folder.mkdir()
        command = [sys.executable, "-c", CODE, str(source), str(folder), codec]
        environ = {**os.environ, "MALLOC_PERTURB_": filling}
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1
