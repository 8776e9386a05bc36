"""What a process without tenants' files does not pay for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import sys
from shared.tenancy.directory import load
load('{"demo": {"policy": {"max_pixels": 7}}}', folder=sys.argv[1])
print("yaml" in sys.modules)
"""


def yaml_is_loaded(folder: Path) -> str:
    command = [sys.executable, "-c", CODE, str(folder)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def test_yaml_is_imported_for_a_file_and_not_for_an_empty_folder(tmp_path: Path) -> None:
    assert yaml_is_loaded(tmp_path) == "False"
    (tmp_path / "acme.yaml").write_text("{}")
    assert yaml_is_loaded(tmp_path) == "True"
