"""Tenants of a folder follow its files, and a file that cannot be used changes nothing but the log and a gauge."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shared.errors import ConfigError, TenantNotReadyError, UnauthorizedError
from shared.rejections import UnknownTenantError
from shared.tenancy import api_keys, folder
from shared.tenancy.directory import Directory, load
from shared.tenancy.tenant import Policy
from tests.unit.tenancy.files import Mounted, with_keys
from tests.unit.tenancy.test_directory import SECRET

NOW = 1_800_000_000.0


@dataclass
class Gauges:
    values: dict[str, float] = field(default_factory=dict)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.values[name] = value


@pytest.fixture(autouse=True)
def _look_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LOOK_SECONDS", 0.0)


def directory(root: Path, **more: str) -> Directory:
    return load(more.get("tenants", ""), more.get("keys", ""), more.get("secrets", ""), str(root))


def test_what_a_file_says(tmp_path: Path) -> None:
    key, kept = api_keys.make(NOW)
    text = with_keys(kept, max_pixels=100) + "name: acme\nwebhook: {url: 'https://example.com/hook'}\n"
    tenants = directory(Mounted(tmp_path, {"acme.yaml": text}).root, secrets=f"acme={SECRET},later={SECRET}")
    acme = tenants.get("acme")
    assert acme.policy == Policy(max_pixels=100)
    assert (acme.webhook.url, acme.webhook.secret) == ("https://example.com/hook", SECRET)
    assert tenants.authenticate(key).tenant is acme


def test_files_change_come_and_go(tmp_path: Path) -> None:
    key, kept = api_keys.make(NOW)
    mounted = Mounted(tmp_path, {"a.yaml": with_keys(kept), "b.yaml": "{}"})
    tenants = directory(tmp_path)
    before = tenants.get("a")
    mounted.swap({"a.yaml": with_keys(kept, max_pixels=7), "c.yaml": "{}"})
    assert (tenants.get("a").policy.max_pixels, before.policy.max_pixels) == (7, Policy.max_pixels)
    assert tenants.authenticate(key).tenant.policy.max_pixels == 7
    assert tenants.get("c").name == "c"
    with pytest.raises(UnknownTenantError):
        tenants.get("b")
    mounted.swap({})
    with pytest.raises(UnauthorizedError):
        tenants.authenticate(key)


def test_plain_files_work_too(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("policy: {max_pixels: 7}")
    tenants = directory(tmp_path)
    (tmp_path / ".a.yaml.tmp").write_text("policy: {max_pixels: 8}")
    os.replace(tmp_path / ".a.yaml.tmp", tmp_path / "a.yaml")
    assert tenants.get("a").policy.max_pixels == 8
    (tmp_path / "a.yaml").write_text("policy: {max_pixels: 1234}")
    assert tenants.get("a").policy.max_pixels == 1234


BROKEN = {
    "policy: {max_pixel: 7}": "policy.max_pixel",
    "policy: {max_pixels: x}": "policy.max_pixels",
    "policy: {max_pixels: 7, max_pixels: 8}": "policy.max_pixels",
    "policy: {max_pixels: 0}": "policy.max_pixels",
    "policy:": "policy",
    "policy: {swappers: [mesh, mesh]}": "policy.swappers",
    "policy: {swappers: [../mesh]}": "policy.swappers[0]",
    "policy: {stages: [enhanc]}": "policy.stages[0]",
    "policy: {fetch_hosts: ['https://example.com']}": "policy.fetch_hosts[0]",
    "name: other": "name",
    "owner: me": "owner",
    "webhook: {url: 'http://example.com'}": "webhook.url",
    "webhook: {secret: whsec_x}": "webhook.secret",
    "keys: {}": "keys",
    "keys: [{look_up: abcdefgh}]": "keys[0].salt",
    "": "file",
    "[]": "file",
    "x" * (folder.MAX_FILE_BYTES + 1): "file",
    "a: [": "file",
}


@pytest.mark.parametrize(("text", "where"), BROKEN.items(), ids=[text[:40] for text in BROKEN])
def test_a_file_that_cannot_be_used_leaves_its_tenant_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, where: str
) -> None:
    gauges = Gauges()
    mounted = Mounted(tmp_path, {"a.yaml": "policy: {max_pixels: 7}", "b.yaml": "{}"})
    tenants = load("", folder=str(tmp_path), meter=gauges)
    mounted.swap({"a.yaml": text, "b.yaml": "policy: {max_pixels: 9}"})
    assert tenants.get("a").policy.max_pixels == 7
    assert tenants.get("b").policy.max_pixels == 9
    assert f"tenant file not usable, its tenant stays as it was: {where}: " in caplog.text
    assert gauges.values == {"tenant_files": 2, "tenant_files_unusable": 1}
    caplog.clear()
    mounted.swap({"a.yaml": text, "b.yaml": "policy: {max_pixels: 9}"})
    tenants.get("a")
    assert caplog.text == ""
    mounted.swap({"a.yaml": "policy: {max_pixels: 8}"})
    assert tenants.get("a").policy.max_pixels == 8
    assert gauges.values == {"tenant_files": 1, "tenant_files_unusable": 0}


def test_a_file_that_was_never_usable_makes_its_tenant_wait(tmp_path: Path) -> None:
    mounted = Mounted(tmp_path, {"a.yaml": "policy: {max_pixel: 7}"})
    tenants = directory(tmp_path)
    with pytest.raises(TenantNotReadyError):  # not unknown: what is under way for it must not be refused for good
        tenants.get("a")
    mounted.swap({"a.yaml": "{}"})
    assert tenants.get("a").policy == Policy()


def test_other_files_and_a_file_with_another_ending(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("README.md", ".hidden.yaml", "a.yaml.bak"):
        (tmp_path / name).write_text("x: [")
    (tmp_path / "dir.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "a.yml").write_text("{}")
    (tmp_path / "Big.yaml").write_text("{}")
    (tmp_path / "latin.yaml").write_bytes("name: latin # \xe9".encode("latin-1"))
    tenants = directory(tmp_path)
    with pytest.raises(UnknownTenantError):
        tenants.get("a")
    problems = {record.__dict__["file"]: record.getMessage() for record in caplog.records}
    assert set(problems) == {"a.yml", "Big.yaml", "latin.yaml"}
    assert "must be called <tenant>.yaml" in problems["a.yml"]
    assert "DNS label" in problems["Big.yaml"]
    assert "UTF-8" in problems["latin.yaml"]


def test_a_tenant_may_not_stand_in_both_places(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Mounted(tmp_path, {"demo.yaml": "policy: {max_pixels: 7}"})
    tenants = directory(tmp_path, tenants='{"demo": {}}', keys="demo=key-of-demo-0123456789")
    assert tenants.get("demo").policy == Policy()
    assert tenants.authenticate("key-of-demo-0123456789").tenant.name == "demo"
    assert "stands in WAKESWAP_TENANTS too" in caplog.text


def test_a_folder_must_be_there_at_the_start_and_may_vanish_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    root = tmp_path / "tenants"
    with pytest.raises(ConfigError, match="WAKESWAP_TENANTS_FOLDER"):
        directory(root)
    Mounted(root, {"a.yaml": "{}"})
    tenants = directory(root)
    caplog.clear()
    root.rename(tmp_path / "away")
    for _ in range(3):
        assert tenants.get("a").name == "a"
    assert caplog.text.count("not readable") == 1
    (tmp_path / "away").rename(root)
    assert tenants.get("a").name == "a"
    assert "readable again" in caplog.text


def test_work_of_another_process_waits_for_a_tenant_that_is_not_here_yet(tmp_path: Path) -> None:
    mounted = Mounted(tmp_path)
    tenants = directory(tmp_path)
    with pytest.raises(TenantNotReadyError):
        tenants.accepted("new")
    mounted.swap({"new.yaml": "{}"})
    assert tenants.accepted("new").name == "new"
    with pytest.raises(UnknownTenantError):  # nothing can change here
        load('{"demo": {}}').accepted("new")


def test_the_folder_is_looked_at_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LOOK_SECONDS", 3600.0)
    mounted = Mounted(tmp_path, {"a.yaml": "{}"})
    tenants = directory(tmp_path)
    mounted.swap({"a.yaml": "policy: {max_pixels: 7}"})
    assert tenants.get("a").policy == Policy()


def in_threads(work: Callable[[], None], count: int = 4) -> list[BaseException]:
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - what a thread died of is the finding
            faults.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def test_no_reader_is_disturbed_while_the_folder_is_swapped(tmp_path: Path) -> None:
    key, kept = api_keys.make(NOW)
    mounted = Mounted(tmp_path, {"a.yaml": with_keys(kept, max_pixels=1, max_bytes=1)})
    tenants = directory(tmp_path)
    over = threading.Event()

    def read() -> None:
        seen = 0
        while not over.is_set():
            policy = tenants.authenticate(key).tenant.policy
            assert policy.max_pixels == policy.max_bytes, "one version, not half of two"
            assert policy.max_pixels >= seen
            seen = policy.max_pixels

    def swap() -> None:
        for version in range(2, 60):
            mounted.swap({"a.yaml": with_keys(kept, max_pixels=version, max_bytes=version)})
        over.set()

    writer = threading.Thread(target=swap)
    writer.start()
    faults = in_threads(read)
    writer.join()
    assert faults == []
    assert tenants.get("a").policy.max_pixels == 59
