"""POST /v1/jobs with a video as target: what it is decides, before there is a job; it never lies in memory."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from shared.errors import JsonValue
from shared.events.payloads import Job
from shared.jobs import batch, line
from shared.net.fetch import Bounds, Fetcher
from shared.tenancy.directory import Directory, load
from tests.unit.front.api import Api, code
from tests.unit.front.test_submit import Body, post
from tests.unit.jobs.world import DATA, KEYS, picture, ping, rejections
from tests.unit.net.site import HOST, internet

VIDEO, IMAGES = DATA / "video", DATA / "image"
POLICIES: dict[str, JsonValue] = {
    "demo": {"fetch_hosts": [HOST]},
    "acme": {"max_frames": 49},
    "small": {"max_video_bytes": 9_000, "max_seconds": 1, "max_pixels": 30_000},
}


def tenants(**more: JsonValue) -> Directory:
    return load(json.dumps({name: {"policy": policy} for name, policy in (POLICIES | more).items()}), KEYS)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    made = Api(tmp_path)
    made.world.tenants = tenants()
    return made


def clip(name: str) -> bytes:
    return (VIDEO / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("no_audio.mp4", "video/mp4"),
        ("alpha_vp9.webm", "video/webm"),
        ("one_frame.mp4", "video/mp4"),
        ("audio_stream_first.mp4", "video/mp4"),
        ("cover_art.mp4", "video/mp4"),
        ("moov_at_end_large.mp4", "video/mp4"),
    ],
)
def test_vid_07_vid_09_a_video_is_taken_as_it_is(api: Api, name: str, content_type: str) -> None:
    assert api.send(target=clip(name)).status_code == 202
    (job,) = api.jobs
    assert (job.media, job.target.content_type, job.target.size) == ("video", content_type, len(clip(name)))
    assert job.target.digest == hashlib.sha256(clip(name)).hexdigest()
    data, info = api.world.store.get(job.target.key)
    assert (data, info.content_type) == (clip(name), content_type)
    assert info.metadata["wakeswap-job"] == job.job


def test_vid_09_a_jpeg_named_mp4_is_a_picture(api: Api) -> None:
    assert api.send(target=clip("jpeg_named.mp4")).status_code == 202
    assert [(job.media, job.target.content_type) for job in api.jobs] == [("image", "image/jpeg")]


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("audio_only.mp4", 422, "no_video_stream"),
        ("zero_frames.mp4", 422, "no_video_stream"),
        ("no_moov.mp4", 422, "media_truncated"),
        ("zero_bytes.mp4", 422, "media_empty"),
    ],
)
def test_vid_09_refused_before_a_job_exists(api: Api, name: str, status: int, expected: str) -> None:
    assert code(api.send(target=clip(name))) == (status, expected)
    assert api.broker.events == []
    assert api.world.store.list("tenants/").objects == ()


@pytest.mark.parametrize(
    "data", [b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/a.ts\n", b"ffconcat version 1.0\nfile a\n", b"v=0\no=- 0 0\n"]
)
def test_playlists_and_scripts_are_no_video(api: Api, data: bytes) -> None:
    assert code(api.send(target=data)) == (415, "unsupported_media_type")


@pytest.mark.parametrize("name", ["no_audio.mp4", "alpha_vp9.webm"])
def test_a_video_is_no_source_and_no_reference(api: Api, name: str) -> None:
    assert code(api.send(clip(name))) == (415, "unsupported_media_type")
    form = {
        "source": (io.BytesIO(picture(1)), "s.jpg"),
        "target": (io.BytesIO(clip(name)), "t"),
        "reference": (io.BytesIO(clip(name)), "r"),
        "options": json.dumps({"faces": "reference"}),
    }
    response = api.call("POST", "/v1/jobs", data=form, content_type="multipart/form-data")
    assert code(response) == (415, "unsupported_media_type")


def test_limits_of_the_tenant(api: Api) -> None:
    assert code(api.send(target=clip("no_audio.mp4"), tenant="small")) == (413, "video_too_large")
    assert code(api.send(target=clip("no_audio.mp4"), tenant="acme")) == (422, "video_too_long")
    assert code(api.send(target=clip("full_range_yuvj.mp4"), tenant="small")) == (413, "image_too_large")
    assert code(api.send(target=clip("two_audio_eng_deu.mp4"), tenant="acme")) == (422, "video_too_long")
    assert api.broker.events == []


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("no_audio.mp4", {"upscaler": "real-esrgan"}, "upscaler"),
        ("no_audio.mp4", {"format": "jpeg"}, "format"),
        ("no_audio.mp4", {"format": "webm", "codec": "h264"}, "codec"),
        ("alpha_vp9.webm", {"codec": "h265"}, "codec"),
        ("no_audio.mp4", {"format": "gif", "codec": "av1"}, "codec"),
        ("jpeg_named.mp4", {"format": "mp4"}, "format"),
        ("jpeg_named.mp4", {"codec": "h264"}, "codec"),
    ],
)
def test_options_that_do_not_suit_the_medium(api: Api, name: str, options: dict[str, str], field: str) -> None:
    response = api.send(target=clip(name), options=options)
    assert code(response) == (422, "unusable_option")
    assert response.get_json(force=True)["context"]["field"] == field


@pytest.mark.parametrize("options", [{"format": "webm", "codec": "vp9"}, {"format": "gif"}, {"codec": "h265"}, {}])
def test_options_that_do(api: Api, options: dict[str, str]) -> None:
    assert api.send(target=clip("no_audio.mp4"), options=options).status_code == 202


def test_a_video_that_breaks_off_is_refused_or_finished(api: Api) -> None:
    data = clip("faststart.mp4")[:14_000]
    assert code(api.send(target=data)) == (422, "media_truncated")
    assert api.send(target=data, options={"damaged": "finish"}).status_code == 202


def test_a_video_by_name_and_by_upload(api: Api) -> None:
    base = "tenants/demo/inbox/"
    api.world.put(base + "source.jpg", picture(1))
    key = api.world.put(base + "a/target.mp4", clip("no_audio.mp4"))
    asked = {"source": "source.jpg", "target": "a/target.mp4"}
    assert api.call("POST", "/v1/jobs", json=asked).status_code == 202
    source = api.world.put(base + "a/source.jpg", picture(1))
    (accepted,) = api.world.upload(source)
    assert isinstance(accepted.payload, Job)
    for job in (*api.jobs, accepted.payload):
        assert (job.media, job.target.key, job.target.content_type) == ("video", key, "video/mp4")


def test_a_video_in_a_batch(api: Api) -> None:
    base = "tenants/demo/inbox/night/"
    for name in ("no_audio.mp4", "audio_only.mp4"):
        api.world.put(f"{base}{name}/source.jpg", picture(1))
        api.world.put(f"{base}{name}/target.mp4", clip(name))
    found = [*batch.run(ping(prefix="night/"), api.world), *line.tick(api.world)]
    assert [refusal.code for refusal in rejections(found)] == ["no_video_stream"]
    assert [entry.payload.media for entry in found if isinstance(entry.payload, Job)] == ["video"]


def test_a_video_by_address(tmp_path: Path) -> None:
    with internet(trustme.CA(), HOST) as web:
        api = Api(tmp_path, fetcher=Fetcher(Bounds(total_bytes=1_000_000), web.way))
        policy = {"fetch_hosts": [HOST], "max_bytes": 5_000}
        api.world.tenants = tenants(demo=policy)
        api.world.put("tenants/demo/inbox/s.jpg", picture(1))
        asked = {"source": "s.jpg", "target": {"url": web.serve("/v.mp4", clip("no_audio.mp4"))}}
        assert api.call("POST", "/v1/jobs", json=asked).status_code == 202, "a video may be larger than a picture"
        (job,) = api.jobs
        assert (job.media, api.world.store.get(job.target.key)[0]) == ("video", clip("no_audio.mp4"))
        large = {"source": "s.jpg", "target": {"url": web.serve("/p.jpg", picture(2) + bytes(6_000))}}
        assert code(api.call("POST", "/v1/jobs", json=large)) == (413, "image_too_large")
        other = {"source": {"url": web.serve("/s.jpg", bytes(6_000))}, "target": "s.jpg"}
        assert code(api.call("POST", "/v1/jobs", json=other)) == (413, "image_too_large")


def test_a_large_video_never_lies_in_memory(api: Api) -> None:
    megabytes = 64
    api.app.config["MAX_CONTENT_LENGTH"] = None
    head = b'--cut\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\n\r\n'
    room = (8 + megabytes * 2**20).to_bytes(4, "big") + b"free"

    def chunks() -> Iterator[bytes]:
        yield head % b"source" + picture(1) + b"\r\n" + head % b"target" + clip("no_audio.mp4") + room
        yield from itertools.repeat(b"\n" * 65_536, 16 * megabytes)
        yield b"\r\n--cut--\r\n"

    api.world.tenants = tenants(demo={"max_bytes": 2_000_000})
    length = sum(map(len, chunks()))
    tracemalloc.start()
    response = post(api, Body(chunks()), length)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert response.status_code == 202, response.data
    (job,) = api.jobs
    assert api.world.store.head(job.target.key).size == job.target.size > megabytes * 2**20
    assert peak < 16 * 2**20
