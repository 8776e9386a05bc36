"""The generated pages are those that the code would make now, and what the others point to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from shared.errors import WakeswapError

for _tree in ("refusals", "rejections"):
    import_module(f"shared.{_tree}")  # their classes are of the tree once they are imported

ROOT = Path(__file__).parents[2]


def test_generated_pages_are_fresh() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr + "run: python docs/generate.py"


def test_the_readme_shows_a_stage_as_it_is() -> None:
    stage = (ROOT / "functions/moderate/main.py").read_text()
    assert stage[stage.index("def setup") :].rstrip() in (ROOT / "README.md").read_text()


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("knative/**/*.md"), *ROOT.glob("infra/**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)", page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
            assert anchor[1:] in anchors, path + anchor


def test_the_readme_names_answers_that_there_are() -> None:
    readme = (ROOT / "README.md").read_text()
    named = set(re.findall(r"^\| .* \| (\d{3}) `(\w+)`", readme, re.MULTILINE))
    assert len(named) >= 8
    assert named <= {(str(kind.status), kind.code) for kind in _below(WakeswapError)}


def _below(kind: type[WakeswapError]) -> Iterator[type[WakeswapError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)
