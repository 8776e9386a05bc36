"""`python -m infra.audit`, as an operator calls it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from infra.audit.cli import main
from shared.audit.lines import JOB, REFUSED, Line
from shared.audit.marks import Marks
from shared.audit.trail import Trail
from shared.storage.local import LocalStore

KEY, DAY = "the-audit-key-of-the-tests-0123456789", "2027-01-15"


def call(root: Path, *arguments: str) -> int:
    return main(arguments, {"WAKESWAP_STORE_URL": f"file:{root}", "WAKESWAP_AUDIT_KEY": KEY})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    trail = Trail(LocalStore(tmp_path), now=lambda: 1_800_000_000.0)
    for job, code in (("job-00000001", "no_face_in_source"), ("job-00000002", "content_refused")):
        trail.write("demo", job, "detect.0", f"{DAY}T08:00:00Z", [Line(JOB, REFUSED, "stage:detect", code, {"n": 1})])
    return tmp_path


def test_a_day_as_a_table(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(root, "show", "--tenant", "demo", "--day", DAY) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split("\t") == ["at", "job", "what", "decision", "code", "by", "facts"]
    assert first.split("\t")[1:] == ["job-00000001", "job", "refused", "no_face_in_source", "stage:detect", '{"n": 1}']
    assert "job-00000002" in second


def test_a_job_over_all_days_as_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(root, "show", "--tenant", "demo", "--job", "job-00000002", "--format", "json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["code"] == "content_refused"


def test_nothing_of_another_tenant_or_day(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(root, "show", "--tenant", "acme", "--format", "json") == 0
    assert call(root, "show", "--tenant", "demo", "--day", "2027-01-16", "--format", "json") == 0
    assert capsys.readouterr().out == ""
    assert call(root, "show", "--tenant", "../demo") == 1


def test_what_the_audit_calls_a_picture(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = root / "picture.jpg"
    picture.write_bytes(b"a picture")
    assert call(root, "mark", str(picture)) == 0
    assert capsys.readouterr().out.strip() == Marks(KEY).picture(hashlib.sha256(b"a picture").hexdigest())
    assert call(root, "mark", str(root / "none.jpg")) == 1
    assert main(["mark", str(picture)], {}) == 2


def test_a_day_that_is_none(root: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        call(root, "show", "--tenant", "demo", "--day", "today")
