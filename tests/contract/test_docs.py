"""The generated pages are those that the code would make now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_generated_pages_are_fresh() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr + "run: python docs/generate.py"


def test_the_readme_shows_a_stage_as_it_is() -> None:
    stage = (ROOT / "functions/moderate/main.py").read_text()
    assert stage[stage.index("def setup") :].rstrip() in (ROOT / "README.md").read_text()
