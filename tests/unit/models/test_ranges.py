"""MDL-04 and MDL-03 on the way from a bucket: wrong answers, cuts, what is taken up again, bounded memory."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import ModelAccessDeniedError, ModelError, ModelInvalidError, ModelNotFoundError
from shared.models import partial, ranges
from shared.models.bucket import ModelBucket
from shared.models.cache import ModelCache
from shared.models.partial import Partial
from shared.storage.local import LocalStore
from shared.storage.s3 import S3Store
from tests.servers.fake_s3 import Answer, Cut, FakeS3, Refusal, fake_s3
from tests.unit.models.places import DATA, digest, file_set, file_spec

BODY = random.Random(4).randbytes(1_000_000)
RANGE = 100_000
KEY = f"models/sha256/{digest(BODY)}"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.storage.s3.FIRST_WAIT", 0.01)
    monkeypatch.setattr(partial, "RANGE", RANGE)
    monkeypatch.setattr(ranges, "RANGE", RANGE)
    monkeypatch.setattr(ranges, "FIRST", 30_000)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    with fake_s3() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        server.objects[KEY] = BODY
        yield server


def ensure(root: Path) -> bytes:
    return ModelCache(root, S3Store("bucket")).ensure(file_set(file_spec(BODY)))["model"].read_bytes()


def asked(s3: FakeS3) -> list[int]:
    """Where the asked ranges begin."""
    return sorted(int(request.split("=")[1].split("-")[0]) for request in s3.requests)


def test_a_file_comes_in_ranges_each_asked_for_once(tmp_path: Path, s3: FakeS3) -> None:
    assert ensure(tmp_path / "cache") == BODY
    assert asked(s3) == [0, 30_000, *range(RANGE, len(BODY), RANGE)]
    assert s3.sent == len(BODY)
    assert list((tmp_path / "cache/.part").iterdir()) == []
    s3.requests.clear()
    assert ensure(tmp_path / "cache") == BODY
    assert s3.requests == []


@pytest.mark.parametrize("size", [0, 1, 29_999, 30_000, 30_001, RANGE, RANGE + 1, 3 * RANGE])
def test_every_length_is_whole(tmp_path: Path, size: int) -> None:
    store, data = LocalStore(tmp_path / "store"), BODY[:size]
    store.put("key", data)
    steps: list[tuple[int, int]] = []
    got = ranges.fetch(
        store,
        "key",
        (digest(data), 0),
        tmp_path / "file",
        partial=tmp_path / "part/x",
        report=lambda done, total: steps.append((done, total)),
    )
    assert (got.size, got.sha256, got.head) == (size, digest(data), data[:512])
    assert (tmp_path / "file").read_bytes() == data
    assert steps[0] == (0, size)
    assert steps[-1] == (size, size)


def test_mdl_04_what_passes_is_tried_again(tmp_path: Path, s3: FakeS3) -> None:
    s3.script = [Refusal(503, "SlowDown"), Refusal(503, "SlowDown"), None, Cut(1000), Refusal(500, "InternalError")]
    assert ensure(tmp_path / "cache") == BODY


@pytest.mark.parametrize(
    ("refusal", "error", "said"),
    [
        (Refusal(404, "NoSuchKey"), ModelNotFoundError, KEY),
        (Refusal(403, "AccessDenied"), ModelAccessDeniedError, "AccessDenied"),
        (Refusal(403, "RequestTimeTooSkewed"), ModelAccessDeniedError, "clock"),
        (Refusal(301, "PermanentRedirect", {"x-amz-bucket-region": "eu-west-1"}), ModelError, "region, eu-west-1"),
    ],
)
def test_mdl_04_what_stays_is_asked_once_and_named(
    tmp_path: Path, s3: FakeS3, refusal: Refusal, error: type[ModelError], said: str
) -> None:
    s3.answer = lambda authorization: refusal
    with pytest.raises(error) as caught:
        ensure(tmp_path / "cache")
    assert said in caught.value.detail
    assert caught.value.status == 503
    asked_again = 1 if refusal.status == 301 else 0  # boto3 looks for the bucket's region by itself
    assert len([request for request in s3.requests if request.startswith("GET")]) == 1 + asked_again
    assert not list((tmp_path / "cache").glob("sample-*"))


def test_mdl_04_expired_credentials_are_loaded_again_once(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(authorization: str) -> Answer:
        if len(s3.requests) < 4 or "Credential=fresh/" in authorization:
            return None
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "fresh")
        return Refusal(400, "ExpiredToken")

    s3.answer = answer
    assert ensure(tmp_path / "cache") == BODY
    s3.answer = lambda authorization: Refusal(400, "ExpiredToken")
    s3.requests.clear()
    with pytest.raises(ModelAccessDeniedError, match="expired"):
        ensure(tmp_path / "other")
    assert len(s3.requests) == 2


def test_mdl_04_bytes_cut_every_time_are_a_failure_that_keeps_what_came(tmp_path: Path, s3: FakeS3) -> None:
    s3.answer = lambda authorization: Cut(10_000) if len(s3.requests) > 5 else None
    with pytest.raises(ModelError, match="cut off"):
        ensure(tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("sample-*"))
    s3.answer = lambda authorization: None
    s3.requests.clear()
    assert ensure(tmp_path / "cache") == BODY
    assert 0 < len(s3.requests) < 11, "what came before is not asked for again"


def interrupted(tmp_path: Path, s3: FakeS3) -> Path:
    s3.answer = lambda authorization: Refusal(503, "SlowDown") if len(s3.requests) > 6 else None
    with pytest.raises(ModelError):
        ensure(tmp_path / "cache")
    s3.answer = lambda authorization: None
    s3.requests.clear()
    return tmp_path / "cache/.part" / digest(BODY)


def test_what_is_taken_up_again_is_of_the_same_version(tmp_path: Path, s3: FakeS3) -> None:
    part = interrupted(tmp_path, s3)
    record = part.with_name(part.name + ".ranges")
    record.write_text(record.read_text().replace('"etag": "', '"etag": "0'))
    assert ensure(tmp_path / "cache") == BODY
    assert {0, 30_000, *range(RANGE, len(BODY), RANGE)} <= set(asked(s3)), "all of it anew"


@pytest.mark.parametrize("damage", ["data", "record", "torn", "shorter", "gone"])
def test_a_damaged_partial_file_costs_time_and_no_truth(tmp_path: Path, s3: FakeS3, damage: str) -> None:
    part = interrupted(tmp_path, s3)
    record = part.with_name(part.name + ".ranges")
    if damage == "data":
        part.write_bytes(bytes(len(BODY)))  # as after a power cut
    elif damage == "record":
        record.write_bytes(b"\xff")
    elif damage == "torn":
        record.write_text(record.read_text() + "9")
    elif damage == "shorter":
        part.write_bytes(b"x")
    else:
        part.unlink()
    assert ensure(tmp_path / "cache") == BODY
    assert list(part.parent.iterdir()) == []


def test_an_object_that_is_replaced_in_between_is_never_mixed(tmp_path: Path, s3: FakeS3) -> None:
    other = bytes(len(BODY))

    def swap(authorization: str) -> Answer:
        if len(s3.requests) == 5:
            s3.objects[KEY] = other
        return None

    s3.answer = swap
    with pytest.raises(ModelError):
        ensure(tmp_path / "cache")
    s3.objects[KEY] = BODY
    assert ensure(tmp_path / "cache") == BODY


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("lfs_pointer", (DATA / "lfs_pointer.txt").read_bytes()),
        ("html", (DATA / "html_page.txt").read_bytes()),
        ("xml", (DATA / "s3_error.txt").read_bytes()),
        ("empty", b""),
        ("truncated", BODY[:-5]),
        ("oversized", BODY + b"\0"),
        ("wrong_digest", BODY[:-1] + bytes([BODY[-1] ^ 1])),
    ],
)
def test_mdl_01_what_the_bucket_has_instead_is_named_and_not_kept(
    tmp_path: Path, s3: FakeS3, kind: str, data: bytes
) -> None:
    s3.objects[KEY] = data
    with pytest.raises(ModelInvalidError) as caught:
        ensure(tmp_path / "cache")
    assert caught.value.context["kind"] == kind
    assert not list((tmp_path / "cache").glob("sample-*"))
    assert [path.name for path in (tmp_path / "cache/.part").glob("*")] == []
    s3.objects[KEY] = BODY
    assert ensure(tmp_path / "cache") == BODY


def test_an_object_that_is_far_too_long_is_not_read(tmp_path: Path, s3: FakeS3) -> None:
    s3.objects[KEY] = bytes(50 * len(BODY))
    with pytest.raises(ModelInvalidError, match="longer"):
        ensure(tmp_path / "cache")
    assert s3.sent <= 65_536


def test_a_tenants_object_is_out_of_reach_of_others(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    store.put(f"models/tenants/acme/sha256/{digest(BODY)}", BODY)
    mine, theirs = ModelBucket(store, "acme"), ModelBucket(store, "other")

    def fetch(bucket: ModelBucket) -> int:
        return bucket.fetch(
            "acme", (digest(BODY), 0), tmp_path / "f", partial=tmp_path / "p/x", report=lambda done, total: None
        ).size

    assert fetch(mine) == len(BODY)
    with pytest.raises(ModelNotFoundError):
        fetch(theirs)


def test_room_is_taken_before_the_first_byte(tmp_path: Path) -> None:
    part = Partial(tmp_path / "x")
    part.begin("e", 5_000_000, b"")
    assert partial.room(part.path) >= 5_000_000
    assert os.stat(part.path).st_size == 5_000_000
    part.close()
