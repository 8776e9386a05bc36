"""The three kinds of places, each against the real thing: a server, pip, a file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from shared.errors import ConfigError, ModelAccessDeniedError, ModelError, ModelNotFoundError
from shared.models import web
from shared.models.sources import Local, Web, Wheel, fetch, parse
from tests.unit.models.places import digest, serving

BODY = bytes(range(256)) * 400


def ignore(done: int, total: int) -> None:
    pass


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "FIRST_WAIT", 0.01)


def test_the_forms() -> None:
    assert parse("wheel:a-b==1.0#a/b.onnx") == Wheel("a-b", "1.0", "a/b.onnx")
    assert parse("https://example.org/a") == Web("https://example.org/a")
    assert parse("http://127.0.0.1:1/a") == Web("http://127.0.0.1:1/a")
    assert parse("file:/a/b") == Local(Path("/a/b"))


@pytest.mark.parametrize(
    "text",
    ["", "a", "wheel:a#b", "wheel:a==1#", "wheel:a==1#../b", "wheel:a==1#/b", "wheel:-r==1#b", "wheel:a>=1#b",
     "http://example.org/a", "https:///a", "file:a", "file://host/a", "s3://bucket/a"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no source"):
        parse(text)


def test_web_counts_and_hashes_on_the_way(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with serving(BODY) as server:
        got = fetch(parse(server.url), tmp_path / "f", tmp_path, lambda done, total: seen.append((done, total)))
    assert (got.size, got.sha256, got.head) == (len(BODY), digest(BODY), BODY[:512])
    assert (tmp_path / "f").read_bytes() == BODY
    assert seen[0] == (0, len(BODY))
    assert seen[-1] == (len(BODY), len(BODY))


@pytest.mark.parametrize("trouble", [503, 429, 500, "cut"])
def test_mdl_04_what_passes_is_tried_again(tmp_path: Path, trouble: int | str) -> None:
    with serving(BODY) as server:
        server.script = [trouble, trouble]
        got = fetch(parse(server.url), tmp_path / "f", tmp_path, ignore)
        assert len(server.requests) == 3
    assert got.sha256 == digest(BODY)


@pytest.mark.parametrize(
    ("status", "error"), [(404, ModelNotFoundError), (403, ModelAccessDeniedError), (400, ModelError)]
)
def test_mdl_04_what_stays_is_asked_once(tmp_path: Path, status: int, error: type[ModelError]) -> None:
    with serving(BODY) as server:
        server.script = [status]
        with pytest.raises(error, match=str(status)):
            fetch(parse(server.url), tmp_path / "f", tmp_path, ignore)
        assert len(server.requests) == 1


def test_mdl_04_bytes_cut_every_time_is_a_failure(tmp_path: Path) -> None:
    with serving(BODY) as server:
        server.script = ["cut"] * 9
        with pytest.raises(ModelError, match=f"{len(BODY) // 2} of {len(BODY)} bytes"):
            fetch(parse(server.url), tmp_path / "f", tmp_path, ignore)
        assert len(server.requests) == web.ATTEMPTS


def test_no_server_is_a_failure_that_may_pass(tmp_path: Path) -> None:
    with serving(BODY) as server:
        url = server.url
    with pytest.raises(ModelError) as caught:
        fetch(parse(url), tmp_path / "f", tmp_path, ignore)
    assert caught.value.code == "model_unavailable"


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        fetch(Local(tmp_path / "none"), tmp_path / "f", tmp_path, ignore)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip's own configuration, pointing to a folder with one small wheel."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny/a.bin", b"aaa")
        wheel.writestr("tiny/b.bin", b"bbbb")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.slow
def test_two_files_of_a_wheel_cost_one_download(tmp_path: Path, index: Path) -> None:
    scratch = tmp_path / "scratch"
    first = fetch(parse("wheel:tiny-weights==1.0#tiny/a.bin"), tmp_path / "a", scratch, ignore)
    (index / "tiny_weights-1.0-py3-none-any.whl").unlink()
    second = fetch(parse("wheel:tiny-weights==1.0#tiny/b.bin"), tmp_path / "b", scratch, ignore)
    assert (first.head, second.head) == (b"aaa", b"bbbb")


@pytest.mark.slow
def test_a_wheel_without_the_file_and_no_wheel_at_all(tmp_path: Path, index: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"has no file tiny/c\.bin"):
        fetch(parse("wheel:tiny-weights==1.0#tiny/c.bin"), tmp_path / "c", tmp_path / "s", ignore)
    with pytest.raises(ModelNotFoundError, match=r"no wheel of tiny-weights==2\.0"):
        fetch(parse("wheel:tiny-weights==2.0#tiny/a.bin"), tmp_path / "c", tmp_path / "s", ignore)
