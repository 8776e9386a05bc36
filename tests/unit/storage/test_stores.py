"""One class of tests for both stores; S3 is a real server process, killed and started again."""

from __future__ import annotations

import hashlib
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from shared.errors import (
    ConfigError,
    ObjectNotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    StoreAccessDeniedError,
    StoreUnavailableError,
)
from shared.rejections import InvalidKeyError
from shared.storage.local import LocalStore
from shared.storage.open import open_store
from shared.storage.protocol import ObjectStore
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed
from tests.unit.serving.support import until

BASE = "tenants/demo/inbox/"


class StoreTests:
    """What the product relies on; subclassed once for each implementation."""

    def test_a_written_object_comes_back_with_type_and_metadata(self, store: ObjectStore) -> None:
        put = store.put(BASE + "a.jpg", b"abc", content_type="image/jpeg", metadata={"wakeswap-job": "j-1"})
        data, info = store.get(BASE + "a.jpg")
        assert data == b"abc"
        assert info.etag == put.etag == store.head(BASE + "a.jpg").etag
        assert (info.size, info.content_type, dict(info.metadata)) == (3, "image/jpeg", {"wakeswap-job": "j-1"})

    def test_overwriting_changes_bytes_type_metadata_and_etag_together(self, store: ObjectStore) -> None:
        first = store.put(BASE + "o", b"1", content_type="text/a", metadata={"a": "1"})
        store.put(BASE + "o", b"22", content_type="text/b")
        data, info = store.get(BASE + "o")
        assert (data, info.content_type, dict(info.metadata)) == (b"22", "text/b", {})
        assert info.etag != first.etag

    def test_a_missing_object_is_told_by_name(self, store: ObjectStore) -> None:
        for call in (store.get, store.head):
            with pytest.raises(ObjectNotFoundError):
                call(BASE + "missing")

    def test_deleting_twice_is_no_error(self, store: ObjectStore) -> None:
        store.put(BASE + "d/e/f", b"x")
        store.delete(BASE + "d/e/f")
        store.delete(BASE + "d/e/f")
        with pytest.raises(ObjectNotFoundError):
            store.head(BASE + "d/e/f")

    def test_create_wins_once_among_threads(self, store: ObjectStore) -> None:
        def attempt(index: int) -> bool:
            barrier.wait()
            try:
                store.create(BASE + f"race{round_}", str(index).encode())
            except PreconditionFailedError:
                return False
            return True

        for round_ in range(3):
            barrier = threading.Barrier(8)
            with ThreadPoolExecutor(8) as pool:
                wins = list(pool.map(attempt, range(8)))
            assert sum(wins) == 1
            assert store.get(BASE + f"race{round_}")[0] == str(wins.index(True)).encode()

    def test_replace_needs_the_current_etag(self, store: ObjectStore) -> None:
        first = store.put(BASE + "r", b"1")
        second = store.replace(BASE + "r", b"2", first.etag)
        with pytest.raises(PreconditionFailedError):
            store.replace(BASE + "r", b"3", first.etag)
        assert store.get(BASE + "r")[0] == b"2"
        assert store.head(BASE + "r").etag == second.etag
        with pytest.raises(PreconditionFailedError):
            store.replace(BASE + "never", b"3", first.etag)

    def test_a_counter_by_compare_and_swap_loses_nothing(self, store: ObjectStore) -> None:
        store.put(BASE + "n", b"0")

        def add() -> None:
            for _ in range(5):
                while True:
                    data, info = store.get(BASE + "n")
                    try:
                        store.replace(BASE + "n", str(int(data) + 1).encode(), info.etag)
                        break
                    except PreconditionFailedError:
                        continue

        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(add) for _ in range(4)]:
                future.result()
        assert store.get(BASE + "n")[0] == b"20"

    def test_a_reader_may_set_a_limit(self, store: ObjectStore) -> None:
        store.put(BASE + "big", b"x" * 1000)
        assert len(store.get(BASE + "big", limit=1000)[0]) == 1000
        with pytest.raises(PayloadTooLargeError):
            store.get(BASE + "big", limit=999)

    def test_a_range_comes_in_pieces_with_the_whole_objects_info(self, store: ObjectStore) -> None:
        data = os.urandom(3_000_000)
        put = store.put(BASE + "range", data, content_type="a/b", metadata={"n": "1"})
        for start, size in ((0, 10), (7, 2_500_000), (2_999_999, 1), (2_999_990, 500), (3_000_000, 5)):
            got = bytearray()

            def write(position: int, piece: bytes, start: int = start, got: bytearray = got) -> None:
                assert position == start + len(got)
                got += piece

            info = store.read_range(BASE + "range", start, size, write, etag=put.etag)
            assert bytes(got) == data[start : start + size]
            assert (info.size, info.etag, info.content_type, info.metadata["n"]) == (3_000_000, put.etag, "a/b", "1")

    def test_a_range_is_of_one_version_of_an_object_that_exists(self, store: ObjectStore) -> None:
        pieces: list[bytes] = []

        def write(position: int, piece: bytes) -> None:
            pieces.append(piece)

        first = store.put(BASE + "versions", b"one")
        second = store.put(BASE + "versions", b"two")
        with pytest.raises(PreconditionFailedError):
            store.read_range(BASE + "versions", 0, 3, write, etag=first.etag)
        assert store.read_range(BASE + "versions", 0, 3, write).etag == second.etag
        with pytest.raises(ObjectNotFoundError):
            store.read_range(BASE + "none", 0, 3, write)
        store.put(BASE + "nothing", b"")
        assert store.read_range(BASE + "nothing", 0, 3, write).size == 0
        assert pieces == [b"two"]

    def test_listing_is_paged_and_complete(self, store: ObjectStore) -> None:
        names = ["a", "a.b", "a/1", "a/2/3", "a0", "ab", "Z", "é", "e\u0301", "日本", "sp ace+%2F"]
        base = "tenants/list/inbox/"
        for name in names:
            if name not in ("a",):  # a folder store cannot hold `a` beside `a/1`
                store.put(base + name, name.encode())
        want = sorted((base + name for name in names if name != "a"), key=str.encode)
        seen, cursor = [], ""
        while True:
            page = store.list(base, cursor=cursor, limit=3)
            seen += [item.key for item in page.objects]
            cursor = page.cursor
            if not cursor:
                break
        assert sorted(seen, key=str.encode) == want
        assert {item.key: item.size for item in store.list(base).objects} == {
            key: len(key[len(base) :].encode()) for key in want
        }

    def test_listing_with_a_delimiter_gives_each_prefix_once_over_pages(self, store: ObjectStore) -> None:
        base = "tenants/pages/jobs/"
        for job in ("j1", "j2", "j3"):
            for part in ("a", "b/c", "z"):
                store.put(f"{base}{job}/{part}", b"")
        seen, cursor = [], ""
        while True:
            page = store.list(base, cursor=cursor, limit=2, delimiter="/")
            seen += page.prefixes
            cursor = page.cursor
            if not cursor:
                break
        assert seen == [f"{base}j1/", f"{base}j2/", f"{base}j3/"]

    def test_files_travel_without_memory(self, store: ObjectStore, tmp_path: Path) -> None:
        source, back = tmp_path / "source", tmp_path / "back"
        source.write_bytes(os.urandom(20 * 1024 * 1024))  # over one multipart part
        store.upload(source, BASE + "file", content_type="application/x", metadata={"k": "v"})
        info = store.download(BASE + "file", back)
        assert hashlib.sha256(back.read_bytes()).digest() == hashlib.sha256(source.read_bytes()).digest()
        assert (info.content_type, dict(info.metadata)) == ("application/x", {"k": "v"})
        with pytest.raises(ObjectNotFoundError):
            store.download(BASE + "none", back)

    def test_hostile_keys_are_refused_before_any_io(self, store: ObjectStore) -> None:
        for key in ("", "/etc/passwd", "a/../b", "a//b", "a/./b", "a/", "nul\0", "a\\b", "line\nbreak", "x" * 1025):
            with pytest.raises(InvalidKeyError):
                store.put(key, b"x")
            with pytest.raises(InvalidKeyError):
                store.get(key)

    def test_a_link_gives_the_object(self, store: ObjectStore) -> None:
        store.put(BASE + "l.jpg", b"linked", content_type="image/jpeg")
        with urllib.request.urlopen(store.link(BASE + "l.jpg", 60, filename="l.jpg")) as answer:
            assert answer.read() == b"linked"


class TestLocalStore(StoreTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path / "objects")

    def test_a_file_dropped_by_hand_is_an_object(self, store: LocalStore) -> None:
        path = store.root / BASE / "dropped.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"hand")
        assert store.get(BASE + "dropped.png")[0] == b"hand"
        before = store.head(BASE + "dropped.png").etag
        path.write_bytes(b"hand2")
        assert store.head(BASE + "dropped.png").etag != before

    def test_listing_is_in_byte_order(self, store: LocalStore) -> None:
        for name in ("a/1", "a.b", "a0", "é", "Z"):
            store.put(BASE + name, b"")
        assert [item.key for item in store.list(BASE).objects] == [
            BASE + name for name in ("Z", "a.b", "a/1", "a0", "é")
        ]

    @pytest.mark.parametrize(
        "prefix",
        ["tenants/../", "../", "/", "tenants//", "tenants/./demo/", ".store/", "tenants/\x00/", f"{'x' * 300}/"],
    )
    def test_a_prefix_that_no_key_has_lists_nothing(self, store: LocalStore, prefix: str) -> None:
        store.put(BASE + "a", b"")
        assert store.list(prefix).objects == ()

    def test_what_lies_beside_the_prefix_is_not_looked_at(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A look at one of a tenant's many jobs costs what that job has."""
        store.put("tenants/demo/jobs/one/job.json", b"")
        store.put("tenants/demo/jobs/other/job.json", b"")
        looked: list[str] = []
        scandir = os.scandir

        def noting(path: Path) -> Any:
            looked.append(path.name)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", noting)
        assert [item.key for item in store.list("tenants/demo/jobs/one/").objects] == ["tenants/demo/jobs/one/job.json"]
        assert looked == ["one"]

    def test_links_lead_nowhere(self, store: LocalStore, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("secret")
        folder = store.root / BASE
        folder.mkdir(parents=True)
        (folder / "link").symlink_to(tmp_path / "secret")
        (folder / "dir").symlink_to(tmp_path)
        other = store.put("tenants/other/inbox/secret", b"secret").key
        (folder / "other").symlink_to(store.root / "tenants/other/inbox")
        (folder / "file").symlink_to(store.root / other)
        (store.root / "tenants/twin").symlink_to(store.root / "tenants/other")
        assert store.list("tenants/twin/").objects == ()
        for key in (
            BASE + "link",
            BASE + "dir/secret",
            BASE + "other/secret",
            BASE + "file",
            "tenants/twin/inbox/secret",
        ):
            with pytest.raises(InvalidKeyError):
                store.get(key)
        assert store.list(BASE).objects == ()

    @pytest.mark.parametrize("damage", [b"", b"\x00" * 9, b"[]", b"{}", b"null"])
    def test_a_damaged_side_file_costs_the_type_and_not_the_object(self, store: LocalStore, damage: bytes) -> None:
        store.put(BASE + "a.jpg", b"abc", content_type="image/jpeg")
        (side,) = [path for path in (store.root / ".store/meta").rglob("*") if path.is_file()]
        side.write_bytes(damage)
        data, info = store.get(BASE + "a.jpg")
        assert (data, info.content_type) == (b"abc", "application/octet-stream")

    def test_its_own_folder_is_out_of_reach_and_unlisted(self, store: LocalStore) -> None:
        with pytest.raises(InvalidKeyError):
            store.get(".store/locks/00")
        assert store.list("").objects == ()

    def test_nothing_half_written_is_ever_visible_and_nothing_stays_behind(self, store: LocalStore) -> None:
        for index in range(20):
            store.put(BASE + "x", bytes([index]) * 100)
        store.delete(BASE + "x")
        assert not list((store.root / ".store" / "tmp").iterdir())
        assert not [path for path in (store.root / ".store" / "meta").rglob("*") if path.is_file()]


@pytest.mark.slow
class TestS3Store(StoreTests):
    url = "s3://wakeswap"

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
        server = Seaweed(tmp_path_factory.mktemp("seaweed"))
        server.start()
        yield server
        server.stop()

    @pytest.fixture
    def store(self, server: Seaweed, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        import boto3

        from shared.storage.s3 import S3Store

        for name, value in (
            ("AWS_ENDPOINT_URL_S3", server.endpoint),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        boto3.setup_default_session()
        whole = S3Store("wakeswap")
        if "wakeswap" not in [bucket["Name"] for bucket in whole._client.list_buckets()["Buckets"]]:
            whole._client.create_bucket(Bucket="wakeswap")
        return open_store(self.url)

    def test_presigned_links_expire_and_resist_tampering(self, store: ObjectStore) -> None:
        store.put(BASE + "p", b"p")
        link = store.link(BASE + "p", 60)
        for bad in (link.replace("inbox/p", "inbox/q"), link.replace("X-Amz-Expires=60", "X-Amz-Expires=600")):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(bad)
            assert caught.value.code == 403
            caught.value.close()

    def test_kill_9_loses_nothing_that_was_acknowledged(self, store: ObjectStore, server: Seaweed) -> None:
        for index in range(30):
            store.put(f"tenants/kill/inbox/{index}", str(index).encode(), metadata={"n": str(index)})
        server.kill()
        with pytest.raises(StoreUnavailableError):
            store.head("tenants/kill/inbox/0")
        server.start()
        until(lambda: serves(store, "tenants/kill/inbox/0"), 60)
        for index in range(30):
            data, info = store.get(f"tenants/kill/inbox/{index}")
            assert (data, info.metadata["n"]) == (str(index).encode(), str(index))

    def test_wrong_credentials_are_not_retried(self, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
        import boto3

        from shared.storage.s3 import S3Store

        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        boto3.setup_default_session()
        with pytest.raises(StoreAccessDeniedError):
            S3Store("wakeswap").put(BASE + "denied", b"x")


def serves(store: ObjectStore, key: str) -> bool:
    """SeaweedFS answers before its volumes have reported where they are."""
    try:
        store.get(key)
    except StoreUnavailableError:
        return False
    return True


@pytest.mark.slow
class TestS3StoreBelowAPrefix(TestS3Store):
    """`s3://<bucket>/<prefix>` is a store like any other; what lies beside the prefix is not there."""

    url = "s3://wakeswap/dedicated/acme/"

    def test_keys_lie_below_it_and_show_nothing_of_it(self, store: ObjectStore) -> None:
        whole, other = open_store("s3://wakeswap"), open_store("s3://wakeswap/dedicated/acm")
        key = store.put("tenants/a/inbox/only", b"here").key
        assert key == "tenants/a/inbox/only"
        assert whole.get(f"dedicated/acme/{key}")[0] == b"here"
        assert [item.key for item in store.list("tenants/a/").objects] == [key]
        assert store.list("tenants/a", delimiter="/").prefixes == ("tenants/a/",)
        for beside in (whole, other):
            assert beside.list("tenants/a/").objects == ()
        with pytest.raises(InvalidKeyError):
            store.put("k" * 1020, b"longer in the bucket than a key can be")


@pytest.mark.parametrize(
    "url", ["s3:wakeswap", "s3://", "s3:///a", "s3://b/a//c", "s3://b/../c", "s3://b/.", "http://b", "file:"]
)
def test_what_is_no_store_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        open_store(url)
