"""`python -m infra.tenants`: what it writes is what the processes read, and no secret is shown twice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.tenants import cli, files
from shared.errors import ConfigError, UnauthorizedError
from shared.tenancy import api_keys, folder
from shared.tenancy.directory import load
from shared.tenancy.tenant import Policy
from tests.unit.tenancy.files import Mounted, with_keys

ROOT = Path(__file__).resolve().parents[3]
NOW = 1_800_000_000.0
KEY = re.compile(r"wk_[a-z2-7]{8}_[a-z2-7]{52}")


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command on tmp_path."""
    for name in [name for name in os.environ if name.startswith("WAKESWAP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WAKESWAP_TENANTS_FOLDER", str(tmp_path))

    def command(*arguments: str) -> Done:
        status = cli.main(arguments)
        return Done(status, *capsys.readouterr())

    return command


def opens(root: Path, key: str) -> bool:
    try:
        return load("", folder=str(root)).authenticate(key).tenant.name == "acme"
    except UnauthorizedError:
        return False


def test_create_writes_a_tenant_and_shows_its_key_once(run: Run, tmp_path: Path) -> None:
    done = run("create", "acme", "--label", 'Ada\'s "laptop" # 1')
    key = done.out.strip()
    assert done.status == 0
    assert KEY.fullmatch(key), "nothing but the key, so that a shell can take it"
    assert key not in done.err
    assert opens(tmp_path, key)
    tenant = folder.read(tmp_path / "acme.yaml", NOW)
    assert (tenant.policy, tenant.keys[0].label) == (Policy(), 'Ada\'s "laptop" # 1')
    for again in (run("show", "acme"), run("show", "acme", "--json"), run("key", "list", "acme"), run("check")):
        assert again.status == 0
        for secret in (key[12:], tenant.keys[0].salt, tenant.keys[0].digest):
            assert secret not in again.out + again.err
    assert key[12:] not in (tmp_path / "acme.yaml").read_text()
    assert (tmp_path / "acme.yaml").stat().st_mode & 0o777 == 0o644


def test_a_key_is_changed_for_another_without_a_gap(run: Run, tmp_path: Path) -> None:
    old = run("create", "acme").out.strip()
    new = run("key", "create", "acme").out.strip()
    assert opens(tmp_path, old)
    assert opens(tmp_path, new)
    third = run("key", "create", "acme")
    assert (third.status, third.out) == (1, "")
    assert "revoke one first" in third.err
    assert run("key", "revoke", "acme", old[3:11]).status == 0
    assert (opens(tmp_path, old), opens(tmp_path, new)) == (False, True)
    assert run("key", "revoke", "acme", old[3:11]).status == 1
    assert run("key", "create", "acme").status == 0


def test_scopes_and_end(run: Run, tmp_path: Path) -> None:
    made = run("create", "acme", "--scope", "jobs:read", "--days", "1.5", "--json").json
    assert KEY.fullmatch(made["key"])
    assert (made["scopes"], made["state"]) == ("jobs:read", "live")
    listed = run("key", "list", "acme", "--json").json["keys"]
    assert listed == [{name: value for name, value in made.items() if name != "key"}]
    assert run("key", "create", "acme", "--days", "0").status == 1
    assert run("key", "create", "acme", "--label", "é").status == 1
    assert len(run("key", "list", "acme", "--json").json["keys"]) == 1


def test_what_has_expired_gives_way(run: Run, tmp_path: Path) -> None:
    expired = [api_keys.make(NOW - 10**9, seconds=1)[1] for _ in range(api_keys.MAX_KEPT)]
    (tmp_path / "acme.yaml").write_text(with_keys(*expired))
    assert run("key", "create", "acme").status == 0
    assert [key["state"] for key in run("key", "list", "acme", "--json").json["keys"]] == ["live"]


WRITTEN = {
    "as people write": """\
# Acme, since 2030
name: acme
keys:   # their keys
{keys}
# above: keys; below: what they may
policy:
  max_pixels: 100   # small

  swappers: [mesh]
""",
    "keys at the end": "policy: {max_pixels: 100}   # small\nkeys:\n{keys}\n",
    "without keys": "# only a policy\npolicy: {max_pixels: 100}\n",
    "without a last line break": "policy: {max_pixels: 100}",
    "no keys, in brackets": "keys: []\npolicy: {max_pixels: 100} # small\n",
    "keys over lines, in brackets": "keys: [\n  ]\npolicy: {max_pixels: 100} # small\n",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_what_people_wrote_stays(run: Run, tmp_path: Path, text: str) -> None:
    old, kept = api_keys.make(NOW)
    entry = yaml.safe_dump([{**vars(kept), "scopes": ["jobs:read"]}], default_flow_style=False).rstrip()
    path = tmp_path / "acme.yaml"
    path.write_text(text.replace("{keys}", entry))
    path.chmod(0o640)
    key = run("key", "create", "acme").out.strip()
    assert opens(tmp_path, key)
    assert opens(tmp_path, old) == ("{keys}" in text)
    assert folder.read(path, NOW).policy.max_pixels == 100
    mine = [line for line in text.splitlines() if "keys" not in line or line.startswith("#")]
    kept_lines = path.read_text().splitlines()
    assert [line for line in mine if line not in kept_lines and line.strip() not in ("]", "")] == []
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["acme.yaml"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("acme", "{policy: {max_pixels: 100}}", "lines of their own"),
        ("acme", "policy: {max_pixel: 100}", "policy.max_pixel: Unknown field."),
        ("acme", None, "Cannot be read: No such file"),
        ("../acme", None, "DNS label"),
        ("Acme", None, "DNS label"),
    ],
)
def test_a_file_that_cannot_be_changed_stays(run: Run, tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "acme.yaml").write_text(text)
    done = run("key", "create", name)
    assert (done.status, done.out) == (1, "")
    assert said in done.err
    assert [path.read_text() for path in tmp_path.iterdir()] == ([] if text is None else [text])


def test_a_name_is_taken_once_and_must_be_one(run: Run, tmp_path: Path) -> None:
    run("create", "acme")
    before = (tmp_path / "acme.yaml").read_text()
    again = run("create", "acme")
    assert (again.status, again.out, (tmp_path / "acme.yaml").read_text()) == (1, "", before)
    assert run("create", "../evil").status == 1
    assert not (tmp_path.parent / "evil.yaml").exists()


def test_a_mounted_folder_is_not_written(run: Run, tmp_path: Path) -> None:
    Mounted(tmp_path, {"acme.yaml": "{}"})
    done = run("key", "create", "acme")
    assert done.status == 1
    assert "ConfigMap" in done.err
    assert (tmp_path / "acme.yaml").is_symlink()


def test_check_names_every_fault(run: Run, tmp_path: Path) -> None:
    key = api_keys.make(NOW)[1]
    texts = {
        "a.yaml": with_keys(key),
        "b.yaml": with_keys(key),
        "c.yaml": "policy: {max_pixel: 1}",
        "d.yml": "{}",
        "e.yaml": "{}",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    done = run("check", str(tmp_path))
    assert done.status == 1
    assert done.out.splitlines() == [
        "c.yaml: policy.max_pixel: Unknown field.",
        "d.yml: file: The file must be called <tenant>.yaml.",
        "b.yaml: keys[0].look_up: a.yaml has it too, and it opens neither.",
        "5 files checked, 3 bad",
    ]
    assert run("check", "--json").json["checked"] == 5
    assert run("check", str(tmp_path / "none")).status == 1


def test_show_tells_what_holds(run: Run, tmp_path: Path) -> None:
    (tmp_path / "acme.yaml").write_text("policy: {max_pixels: 100}\nwebhook: {url: 'https://example.com/x'}")
    lines = run("show", "acme").out.splitlines()
    assert "policy.max_pixels\t100" in lines
    assert 'policy.priority\t"interactive" (default)' in lines
    assert 'webhook.url\t"https://example.com/x"' in lines
    shown = run("show", "acme", "--json").json
    assert (shown["policy"]["max_pixels"], shown["policy"]["max_bytes"]) == (100, Policy.max_bytes)


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme.yaml").write_text("policy: {max_pixels: 100}")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"), files.keys_of(tmp_path, "acme", NOW) as keys:
        keys.append(api_keys.make(NOW)[1])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["policy: {max_pixels: 100}"]


@pytest.mark.slow
def test_as_it_is_started(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WAKESWAP_")}

    def start(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "infra.tenants", *arguments]
        return subprocess.run(command, cwd=ROOT, env={**clean, **more}, capture_output=True, text=True, check=False)

    assert start("create", "acme", "--folder", str(tmp_path)).returncode == 0
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "infra.tenants", "key", "create", "acme", "--folder", str(tmp_path)],
            cwd=ROOT, env=clean, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    keys = [process.communicate(timeout=60)[0].strip() for process in running]
    assert sorted(process.returncode for process in running) == [0, 1, 1, 1], "of four at a time one finds room"
    assert [opens(tmp_path, key) for key in keys if key] == [True]
    assert start("show", "acme").returncode == 2
    assert start("show", "acme", WAKESWAP_TENANT_FOLDER=str(tmp_path)).returncode == 2
    assert start("check", WAKESWAP_TENANTS_FOLDER=str(tmp_path)).stdout == "1 files checked, 0 bad\n"
