"""Uploads become jobs by the grammar of the inbox, each once, and never anything else."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import TransientError
from shared.events.choices import Options
from shared.events.notifications import ObjectCreated, parse
from shared.jobs import inbox, uploads
from shared.jobs.accepted import Accepted
from shared.rejections import ObjectChangedError
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.protocol import ObjectInfo
from shared.storage.scoped import TenantStore
from shared.tenancy.directory import load
from tests.unit.jobs.world import NOW, World, drain, event_file, jobs, picture, rejections

MARK = {"wakeswap-job": "job-1"}
BASE = "tenants/demo/inbox/"


def pair(world: World, folder: str = "a", tenant: str = "demo") -> list[str]:
    base = f"tenants/{tenant}/inbox/{folder}/"
    return [world.put(base + "source.jpg", picture(1)), world.put(base + "target.png", picture(2, kind="PNG"))]


def test_pair_starts_when_both_are_there(world: World) -> None:
    source = world.put(BASE + "a/source.jpg", picture(1))
    assert world.upload(source) == []
    target = world.put(BASE + "a/target.png", picture(2, kind="PNG"))
    (accepted,) = world.upload(target)
    (job,) = jobs([accepted])
    assert (accepted.tenant, accepted.cause) == ("demo", job.job)
    assert [ref.key for ref in job.source] == [source]
    assert (job.target.key, job.target.content_type, job.target.size) == (
        target,
        "image/png",
        len(picture(2, 64, "PNG")),
    )
    assert (job.origin, job.priority, job.options) == ("upload", "interactive", Options())
    assert jobs(world.upload(source)) == [job]  # the notification of the other half, or a repeat


def test_new_object_makes_a_new_job_and_the_newest_counts(world: World) -> None:
    first = jobs(world.upload(*pair(world)))[0]
    world.put(BASE + "a/source.png", picture(9, kind="PNG"))
    second = jobs(world.upload(BASE + "a/source.jpg"))[0]  # late notification of the old half
    assert second.job != first.job
    assert second.source[0].key == BASE + "a/source.png"
    third = jobs(world.upload(BASE + "a/source.png"))[0]
    assert third == second


def test_template(world: World) -> None:
    target = world.put("tenants/demo/templates/poster/target.png", picture(2, kind="PNG"))
    one, two = world.put(BASE + "templates/poster/ann.jpg", picture(1)), world.put(BASE + "templates/poster/bob.jpg")
    first, second = jobs(world.upload(one, two))
    assert first.target.key == second.target.key == target
    assert [first.source[0].key, second.source[0].key] == [one, two]
    assert first.job != second.job
    assert world.upload("tenants/demo/templates/poster/target.png") == []


def test_template_without_a_target(world: World) -> None:
    key = world.put(BASE + "templates/none/ann.jpg")
    with pytest.raises(TransientError):
        world.upload(key, age=5)
    (late,) = rejections(world.upload(key, age=300))
    assert late.code == "object_gone"
    world.put("tenants/demo/templates/none/target.jpg", picture(2))
    assert len(jobs(world.upload(key, age=300))) == 1


def manifest(world: World, **fields: object) -> str:
    return world.put(BASE + "x/one.job.json", json.dumps(fields).encode())


def test_manifest(world: World) -> None:
    world.put(BASE + "x/a.jpg", picture(1))
    world.put(BASE + "x/more/b.jpg", picture(2))
    full = world.put("tenants/demo/results/old.png", picture(3))
    key = manifest(world, source=["a.jpg", "more/b.jpg"], target=full, options={"format": "png", "faces": 1})
    (job,) = jobs(world.upload(key))
    assert [ref.key for ref in job.source] == [BASE + "x/a.jpg", BASE + "x/more/b.jpg"]
    assert job.target.key == full
    assert job.options == Options(format="png", faces="1")


def test_face_02_a_manifest_with_a_reference(world: World) -> None:
    for name, number in (("a", 1), ("b", 2), ("who", 3)):
        world.put(BASE + f"x/{name}.jpg", picture(number))
    key = manifest(world, source="a.jpg", target="b.jpg", reference="who.jpg", options={"faces": "reference"})
    (job,) = jobs(world.upload(key))
    assert job.reference is not None
    assert job.reference.key == BASE + "x/who.jpg"
    world.put(BASE + "x/who.jpg", picture(4))
    (other,) = jobs(world.upload(key))
    assert other.job != job.job
    assert other.reference != job.reference


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"options": {"faces": "reference"}}, "faces"),
        ({"reference": "a.jpg"}, "reference"),
        ({"reference": 1, "options": {"faces": "reference"}}, "reference"),
        ({"options": {"mapping": [{"source": 1, "target": 0}]}}, "mapping"),
    ],
)
def test_a_manifest_whose_options_do_not_go_with_its_pictures(
    world: World, fields: dict[str, object], field: str
) -> None:
    world.put(BASE + "x/a.jpg")
    (rejection,) = rejections(world.upload(manifest(world, source="a.jpg", target="a.jpg", **fields)))
    assert (rejection.code, rejection.context) == ("invalid_manifest", {"field": field})


def test_manifest_before_its_pictures_waits_for_them(world: World) -> None:
    world.put(BASE + "x/a.jpg")
    key = manifest(world, source="a.jpg", target="late.jpg")
    with pytest.raises(TransientError):
        world.upload(key, age=10)
    world.put(BASE + "x/late.jpg", picture(4))
    assert len(jobs(world.upload(key, age=10))) == 1
    world.store.delete(BASE + "x/late.jpg")
    (gone,) = rejections(world.upload(key, age=100))
    assert gone.code == "object_gone"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"no json", "invalid_manifest"),
        (b"[]", "invalid_manifest"),
        (b'{"source": "a.jpg"}', "invalid_manifest"),
        (b'{"source": [], "target": "b.jpg"}', "invalid_manifest"),
        (b'{"source": "a.jpg", "target": "b.jpg", "tagret": 1}', "invalid_manifest"),
        (b'{"source": "a.jpg", "target": "b.jpg", "options": {"quality": 101}}', "invalid_manifest"),
        (b'{"source": "../../acme/inbox/a.jpg", "target": "b.jpg"}', "invalid_key"),
        (b'{"source": "tenants/acme/inbox/a.jpg", "target": "b.jpg"}', "invalid_key"),
        (b" " * 70_000, "invalid_manifest"),
    ],
)
def test_bad_manifest_is_rejected_once(world: World, body: bytes, code: str) -> None:
    world.put("tenants/acme/inbox/a.jpg")
    key = world.put(BASE + "bad.job.json", body)
    first, second = rejections(world.upload(key)), rejections(world.upload(key))
    assert [entry.code for entry in first] == [code]
    assert first == second


def test_bad_picture_is_rejected_under_the_id_its_job_would_have(world: World) -> None:
    world.put(BASE + "a/source.jpg", b"<html>")
    target = world.put(BASE + "a/target.jpg")
    (first,) = rejections(world.upload(target))
    assert (first.code, first.status, first.stage) == ("unsupported_media_type", 415, "intake")
    assert rejections(world.upload(BASE + "a/source.jpg")) == [first]


def test_tenants_limits_hold(world: World) -> None:
    world.put("tenants/small/inbox/a/source.jpg", picture(1, side=128))
    (pixels,) = rejections(world.upload(world.put("tenants/small/inbox/a/target.jpg")))
    assert pixels.code == "image_too_large"
    world.put("tenants/small/inbox/b/source.jpg", picture(1) + bytes(5000))
    (size,) = rejections(world.upload(world.put("tenants/small/inbox/b/target.jpg")))
    assert (size.code, size.context) == ("image_too_large", {"limit_bytes": 5000})


@pytest.mark.parametrize(
    "key",
    [
        "notes.txt",
        "source.jpg.part/x",
        "a/sources.jpg",
        "a/source",
        ".hidden/source.jpg",
        "a/.source.jpg",
        "templates/x",
    ],
)
def test_other_uploads_start_nothing(world: World, key: str) -> None:
    world.put(BASE + "a/target.jpg")
    assert world.upload(world.put(BASE + key)) == []


class Reads(LocalStore):
    """A folder store that notes which objects are looked at."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.keys: set[str] = set()

    def get(self, key: str, *, limit: int | None = None) -> tuple[bytes, ObjectInfo]:
        self.keys.add(key)
        return super().get(key, limit=limit)

    def head(self, key: str) -> ObjectInfo:
        self.keys.add(key)
        return super().head(key)


@pytest.mark.parametrize("name", sorted(event_file("s3_keys_expected.json")))
def test_s3_01_the_object_of_exactly_the_real_key_is_read(tmp_path: Path, name: str) -> None:
    """Each case file's key as a template's source; the key that decoding twice gives holds another picture."""
    store = Reads(tmp_path)
    world = World(store)
    world.put("tenants/demo/templates/poster/target.png", picture(2, kind="PNG"))
    real, wrong = (
        event_file("s3_keys_expected.json")[name][which].replace("t-acme/in/", BASE + "templates/poster/")
        for which in ("real_key", "double_decoded_wrong")
    )
    world.put(real, picture(5))
    if wrong != real:
        world.put(wrong, picture(6))
    body = json.dumps(event_file(f"s3_put_{name}.json")).replace("t-acme/in/", BASE + "templates/poster/")
    told = parse(body.replace("faceswap-in", "wakeswap"))
    store.keys.clear()
    (job,) = jobs(list(uploads.accept(told, world)))
    assert job.source[0].key == real
    assert job.source[0].digest == hashlib.sha256(picture(5)).hexdigest()
    assert wrong == real or wrong not in store.keys


@pytest.mark.parametrize("name", ["minio_put.json", "minio_multipart.json", "s3_multipart_complete.json"])
def test_s3_06_case_files_make_a_job(world: World, name: str) -> None:
    """Whatever the ETag says: one that ends in -5 is no digest of anything."""
    world.put("tenants/demo/templates/poster/target.png", picture(2, kind="PNG"))
    (told,) = parse(event_file(name))
    assert isinstance(told, ObjectCreated)
    key = world.put(told.key.replace("t-acme/in/", BASE + "templates/poster/"), picture(5))
    (job,) = jobs(list(uploads.accept([replace(told, bucket="wakeswap", key=key)], world)))
    assert job.source[0].key == key


@pytest.mark.parametrize("kind", ["Put", "Post", "Copy", "CompleteMultipartUpload"])
@pytest.mark.parametrize("prefix", ["", "s3:"])
def test_s3_06_every_kind_of_upload_makes_a_job(world: World, kind: str, prefix: str) -> None:
    body = event_file("s3_put_space_plus_paren.json")
    body["Records"][0]["eventName"] = f"{prefix}ObjectCreated:{kind}"
    body["Records"][0]["s3"] = {"bucket": {"name": "wakeswap"}, "object": {"key": pair(world)[0]}}
    assert len(jobs(list(uploads.accept(parse(body), world)))) == 1


def test_s3_07_outputs_cannot_lie_where_uploads_are_taken() -> None:
    """No setting places them, so nothing has to be refused at start: the layout has one writer for each prefix."""
    for ours in (keys.result("demo", "x.png"), keys.job("demo", "0123456789", "input", "x.png")):
        assert not ours.startswith(keys.inbox("demo"))
        assert not inbox.is_upload("demo", ours)


def test_s3_07_own_objects_never_make_a_job(world: World) -> None:
    pair(world)
    marked = world.put(BASE + "a/source.jpg", picture(7), metadata=MARK)
    result = world.put("tenants/demo/results/source.jpg", picture(8))
    stage = world.put("tenants/demo/jobs/0123456789/input/source.jpg", picture(8))
    assert world.upload(marked, result, stage, "system/dead-letter/x.json") == []
    assert world.counted.counts == {"uploads_ignored.own_object": 1, "uploads_ignored.outside_inbox": 3}


def test_s3_07_case_file(world: World) -> None:
    ours = []
    for entry in parse(event_file("s3_output_prefix_recursion.json")):
        assert isinstance(entry, ObjectCreated)
        output = entry.key.startswith("t-acme/out/")
        key = entry.key.replace("t-acme/out/", "tenants/demo/results/").replace("t-acme/in/", BASE + "a/")
        ours.append(world.put(key) if output else world.put(key, metadata=MARK))
    assert world.upload(*ours) == []


def test_s3_08_traversal_keys_make_one_rejection_each(tmp_path: Path) -> None:
    store = Reads(tmp_path / "objects")
    world = World(store)
    world.put("tenants/acme/inbox/secret/source.jpg")
    told = [entry.key for entry in parse(event_file("s3_traversal_keys.json")) if isinstance(entry, ObjectCreated)]
    swap = [("t-acme/in/", BASE + "a/source"), ("t-globex/in/", "tenants/acme/inbox/"), ("t-acme//in//", BASE + "/a//")]
    for old, new in swap:
        told = [key.replace(old, new) for key in told]
    for key in told:
        accepted = world.upload(key)
        assert jobs(accepted) == []
        if key.startswith(BASE):
            (rejection,) = rejections(accepted)
            assert rejection.code in ("invalid_key", "object_gone")
            assert rejections(world.upload(key)) == [rejection]
        else:
            assert accepted == []
    assert not [key for key in store.keys if "acme" in key], "another tenant's object was never looked at"
    assert {path.name for path in tmp_path.iterdir()} == {"objects"}, "nothing was written anywhere else"


@pytest.mark.parametrize(
    "rest", ["../../acme/inbox/a/source.jpg", "a//source.jpg", "a/./source.jpg", "a\x00/source.jpg"]
)
def test_s3_08_rejected_in_the_name_of_the_raw_tenant(world: World, rest: str) -> None:
    pair(world, "a", "acme")
    (accepted,) = world.upload(BASE + rest)
    assert accepted.tenant == "demo"
    assert rejections([accepted])[0].code == "invalid_key"


def test_s3_08_double_slash_is_another_upload(world: World) -> None:
    one, two = world.upload(BASE + "a//b.jpg", BASE + "a///b.jpg")
    assert one.cause != two.cause


@given(st.text(max_size=60), st.sampled_from(["", BASE, "tenants/demo/", "tenants/"]))
def test_s3_08_any_key_is_answered(tmp_path_factory: pytest.TempPathFactory, key: str, base: str) -> None:
    world = World(LocalStore(tmp_path_factory.getbasetemp() / "shared-objects"))
    accepted = world.upload(base + key, age=300)
    assert jobs(accepted) == []
    assert all(entry.tenant == "demo" for entry in accepted)


def test_s3_09_tenant_not_ready_within_the_grace_time(world: World) -> None:
    ours = pair(world, tenant="late")
    with pytest.raises(TransientError) as caught:
        world.upload(ours[0], age=59)
    assert (caught.value.status, caught.value.code) == (503, "tenant_not_ready")
    world.tenants = load('{"late": {}}')
    assert len(jobs(world.upload(ours[0], age=59))) == 1


def test_s3_09_unknown_tenant_after_the_grace_time(world: World) -> None:
    ours = pair(world, tenant="never")
    (accepted,) = world.upload(ours[0], age=61)
    assert accepted.tenant == "never"
    assert rejections([accepted])[0].code == "unknown_tenant"


def test_s3_09_one_that_waits_does_not_hold_up_the_others(world: World) -> None:
    late, ours = pair(world, tenant="late"), pair(world)
    told = [ObjectCreated("wakeswap", key, time=NOW) for key in (late[0], ours[0])]
    seen: list[Accepted] = []
    with pytest.raises(TransientError):
        drain(uploads.accept(told, world), seen)
    assert [entry.tenant for entry in seen] == ["demo"]


def test_s3_09_object_gone_is_rejected_without_retry(world: World) -> None:
    key = pair(world)[0]
    world.store.delete(key)
    (rejection,) = rejections(world.upload(key))
    assert (rejection.code, rejection.context) == ("object_gone", {"key": key})
    assert rejections(world.upload(key)) == [rejection]


def test_s3_09_a_replaced_upload_is_never_mixed_with_the_old_one(world: World) -> None:
    """No version is asked for: a job names its pictures by digest, and the newest object makes a job of its own."""
    source, _ = pair(world)
    (first,) = jobs(world.upload(source))
    world.put(source, picture(9))
    late = ObjectCreated("wakeswap", source, etag="old", version="v1", sequencer="1", time=NOW)
    (second,) = jobs(list(uploads.accept([late], world)))
    assert (second.job == first.job, second.source[0].digest) == (False, hashlib.sha256(picture(9)).hexdigest())
    ours = TenantStore(world.store, "demo", first.job, "detect")
    with pytest.raises(ObjectChangedError):
        ours.load(first.source[0])
    assert ours.load(second.source[0]) == picture(9)
    assert ours.load(first.target)


def test_other_buckets_and_prefixes(world: World) -> None:
    ours = pair(world)
    assert world.upload(ours[0], bucket="another") == []
    world.key_prefix = "env/prod/"
    assert world.upload(ours[0]) == []
    assert len(jobs(world.upload("env/prod/" + ours[0]))) == 1


def test_ce_01_two_deliveries_at_once_make_one_job(world: World) -> None:
    ours = pair(world)
    with ThreadPoolExecutor(8) as pool:
        made = [job for accepted in pool.map(world.upload, ours * 8) for job in jobs(accepted)]
    assert len(made) == 16
    assert len(set(made)) == 1  # to the byte: also `created` is the first one's


def test_ce_01_crash_between_record_and_event_heals_on_redelivery(world: World) -> None:
    ours = pair(world)
    told = [ObjectCreated("wakeswap", ours[0], time=NOW)]
    lost = next(uploads.accept(told, world))  # the process dies here: recorded, not published
    world.time += 100
    (again,) = world.upload(ours[0])
    assert again == lost


def test_manifest_that_names_itself_is_no_picture(world: World) -> None:
    key = world.put("tenants/demo/inbox/self.job.json", b'{"source": "self.job.json", "target": "self.job.json"}')
    assert [entry.code for entry in rejections(world.upload(key))] == ["unsupported_media_type"]
