"""Clips written anew: sizes, colours, light, fields, key frames, transparency; and what happens when they cannot be."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.sidedata.sidedata import Type

from shared.video import encoders
from shared.video.choosing import Target, choose
from shared.video.encode import ClipWriter
from shared.video.encoders import Means, encoder, usable
from shared.video.facts import Facts
from shared.video.faults import EncodeFailedError
from shared.video.frame import Frame
from shared.video.planes import bgr
from shared.video.quality import rate_factor
from tests.unit.video import made
from tests.unit.video.chain import facts, frames, ssim, through
from tests.unit.video.made import Recipe

CASES = Path("tests/data/video")
PLAIN = Facts("mp4", "h264", "High", "yuv420p", 0, 64, 48, 0, (1, 1), (1, 1000), 0, 10_000, 100, (10, 1))
NOWHERE = Path("no clip")


def flat(at: int, *, cut: bool = False, size: tuple[int, int] = (64, 48)) -> Frame:
    width, height = size
    shapes = ((height, width), (-(-height // 2), -(-width // 2)), (-(-height // 2), -(-width // 2)))
    return Frame(tuple(np.full(shape, 100, np.uint8) for shape in shapes), "yuv420p", at, 0, key=False, cut=cut)


def writer(path: Path, known: Facts = PLAIN, target: Target | None = None, *, quality: int = 92) -> ClipWriter:
    return ClipWriter(path, NOWHERE, known, target or choose(known), quality=quality)


@pytest.mark.parametrize(("container", "size"), [("same", (101, 77)), ("mkv", (101, 77)), ("mp4", (102, 78))])
def test_vid_04_an_odd_size_is_kept_or_padded(container: str, size: tuple[int, int], tmp_path: Path) -> None:
    codec = "h264" if container == "mp4" else "same"
    done = through(CASES / "odd_101x77.webm", tmp_path, container=container, codec=codec)
    before, after = made.decoded(CASES / "odd_101x77.webm"), made.decoded(done.path)
    assert len(after) == 50
    assert after[0][1].shape[::-1] == size
    assert ssim(after[25][1][:77, :101], before[25][1]) > 0.97
    if container == "mp4":  # the last column and row once more
        assert np.abs(after[0][1][:77, 101].astype(int) - after[0][1][:77, 100]).mean() < 12


def test_vid_04_an_encoder_error_is_encode_failed_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "clip.mkv"
    odd = replace(PLAIN, width=101, height=77)
    clip = writer(path, odd, replace(choose(odd), width=101, height=77))
    with pytest.raises(EncodeFailedError) as caught:
        _fill(clip, [flat(number * 100, size=(101, 77)) for number in range(100)])
    assert caught.value.code == "encode_failed"
    assert not path.exists()


def test_a_caller_that_fails_ends_the_encoder_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "clip.mkv"
    frames_given = (flat(0) if number < 3 else 1 // 0 for number in range(4))
    with pytest.raises(ZeroDivisionError):
        _fill(writer(path), frames_given)
    assert not path.exists()
    assert not any(thread.name == "encode" for thread in threading.enumerate())


def _fill(clip: ClipWriter, given: Iterable[Frame]) -> None:
    with clip:
        for frame in given:
            clip.encode(frame)


def test_a_frame_may_be_changed_as_soon_as_it_was_given(tmp_path: Path) -> None:
    frame = flat(0)
    with writer(tmp_path / "clip.mkv") as clip:
        clip.encode(frame)
        frame.planes[0][:] = 255
    assert made.decoded(tmp_path / "clip.mkv")[0][1].max() < 110


def test_vid_05_hlg_keeps_depth_and_colours(tmp_path: Path) -> None:
    done = through(CASES / "hlg_10bit_hevc.mp4", tmp_path)
    with av.open(str(done.path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.codec_tag) == ("hevc", "hvc1")
        frame = next(container.decode(stream))
        assert frame.format.name == "yuv420p10le"
        assert (frame.color_primaries, frame.color_trc, frame.colorspace) == (9, 18, 9)
        assert (stream.color_primaries, stream.color_trc, stream.colorspace) == (9, 18, 9)


def test_vid_05_hlg_keeps_depth_and_colours_in_webm_too(tmp_path: Path) -> None:
    done = through(CASES / "hlg_10bit_hevc.mp4", tmp_path, container="webm")
    assert done.choice.codec == "av1"
    with av.open(str(done.path)) as container:
        frame = next(container.decode(video=0))
        assert (frame.format.name, frame.color_trc) == ("yuv420p10le", 18)


@pytest.mark.parametrize(("container", "codec"), [("webm", "vp9"), ("png", "same"), ("gif", "same")])
def test_vid_05_where_hdr_cannot_be_it_becomes_an_ordinary_picture_and_is_named(
    container: str, codec: str, tmp_path: Path
) -> None:
    source = CASES / "hlg_10bit_hevc.mp4"
    done = through(source, tmp_path, container=container, codec=codec)
    assert "tone_mapped" in done.choice.warnings
    known = facts(source)
    wanted = bgr(next(iter(frames(source))), (0, 0, known.width, known.height), known)
    with av.open(str(done.path)) as opened:
        frame = next(opened.decode(video=0))
        found = frame.to_ndarray(format="bgr24")
        if container == "webm":
            assert (frame.color_primaries, frame.color_trc, frame.colorspace) == (1, 1, 1)
    assert np.abs(found.astype(int) - wanted).mean() < 8


def test_vid_05_ten_bits_of_h264_stay_ten(tmp_path: Path) -> None:
    done = through(CASES / "h264_10bit.mp4", tmp_path)
    assert next(iter(frames(done.path))).pixel_format == "yuv420p10le"


def test_vid_05_full_range_stays_full(tmp_path: Path) -> None:
    source = CASES / "full_range_yuvj.mp4"
    done = through(source, tmp_path)
    before, after = made.decoded(source, "rgb24")[0][1], made.decoded(done.path, "rgb24")[0][1]
    assert before.min() <= 3 and before.max() >= 252  # noqa: PT018 - one fact: both ends are there
    assert abs(int(after.min()) - int(before.min())) <= 3
    assert abs(int(after.max()) - int(before.max())) <= 3


@pytest.mark.parametrize("container", ["same", "mkv"])
def test_vid_11_transparency_is_kept(container: str, tmp_path: Path) -> None:
    done = through(CASES / "alpha_vp9.webm", tmp_path, container=container)
    assert done.choice.warnings == ()
    assert _see_through(done.path) == pytest.approx(0.587, abs=0.02)


def test_vid_11_a_passed_on_group_keeps_its_transparency(tmp_path: Path) -> None:
    first = through(CASES / "alpha_vp9.webm", tmp_path, seconds=10).path
    twice = tmp_path / "twice"
    twice.mkdir()
    known = facts(first)
    assert known.alpha
    done = through(first, twice, copy=True)
    assert _see_through(done.path) == pytest.approx(0.587, abs=0.02)


def _see_through(path: Path) -> float:
    return float((next(iter(frames(path, alpha=True))).planes[3] == 0).mean())


def test_vid_11_where_transparency_cannot_be_it_lies_on_black_and_is_named(tmp_path: Path) -> None:
    done = through(CASES / "alpha_vp9.webm", tmp_path, container="mp4")
    assert done.choice.warnings == ("alpha_dropped",)
    seen = next(iter(frames(CASES / "alpha_vp9.webm", alpha=True))).planes[3] == 0
    luma = made.decoded(done.path)[0][1]
    assert np.median(luma[seen]) == 16


LIGHT = "hdr10=1:repeat-headers=1:master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)"


@pytest.mark.parametrize("codec", ["h265", "av1", "h264"])
def test_the_light_an_hdr_video_was_made_in_is_kept(codec: str, tmp_path: Path) -> None:
    told = (("x265-params", f"log-level=none:{LIGHT}:max-cll=1000,400"),)
    recipe = Recipe(codec="h265", pixels="yuv420p10le", options=told, colours=(1, 9, 16, 9))
    source = made.make(tmp_path / "source.mp4", recipe)
    wanted = _light(source)
    assert len(wanted) == 2
    assert _light(through(source, tmp_path, container="mkv", codec=codec).path) == wanted


def _light(path: Path) -> dict[str, tuple[float, ...]]:
    """Of the first frame; AVMasteringDisplayMetadata are ten fractions, AVContentLightMetadata two numbers."""
    with av.open(str(path)) as container:
        side = {entry.type: bytes(entry) for entry in next(container.decode(video=0)).side_data}
    found = {}
    if Type.MASTERING_DISPLAY_METADATA in side:
        numbers = np.frombuffer(side[Type.MASTERING_DISPLAY_METADATA][:80], np.int32).reshape(10, 2)
        found["mastering"] = tuple(round(float(a / b), 3) for a, b in numbers)
    if Type.CONTENT_LIGHT_LEVEL in side:
        found["content"] = tuple(np.frombuffer(side[Type.CONTENT_LIGHT_LEVEL][:8], np.uint32).tolist())
    return found


@pytest.mark.parametrize(("flag", "order"), [("tff=1", 2), ("bff=1", 3)])
def test_an_interlaced_video_stays_interlaced_with_the_same_field_first(flag: str, order: int, tmp_path: Path) -> None:
    recipe = Recipe(size=(96, 64), options=(("x264-params", flag), ("flags", "+ildct+ilme")))
    source = made.make(tmp_path / "source.mp4", recipe)
    assert _fields(source) == (True, order)
    assert _fields(through(source, tmp_path).path) == (True, order)


def _fields(path: Path) -> tuple[bool, int]:
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
        return frame.interlaced_frame, container.streams.video[0].codec_context.field_order


@pytest.mark.parametrize("codec", ["h264", "h265", "av1", "vp9"])
def test_key_frames_come_every_two_seconds_and_where_a_scene_begins(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "clip.mkv"
    with writer(path, target=choose(PLAIN, "mkv", codec)) as clip:
        for number in range(60):
            clip.encode(flat(number * 100, cut=number == 27))
    with av.open(str(path)) as container:
        keys = [packet.pts for packet in container.demux(video=0) if packet.size and packet.is_keyframe]
    assert 2700 in keys
    assert max(b - a for a, b in zip(keys, [*keys[1:], 6000], strict=True)) <= 2000


@pytest.mark.parametrize("codec", ["h264", "h265", "av1", "vp9"])
def test_more_quality_takes_more_bytes_and_loses_less(codec: str, tmp_path: Path) -> None:
    source = made.make(
        tmp_path / "source.mkv", Recipe("mkv", ticks=tuple(range(0, 480, 40)), time_base=Fraction(1, 1000))
    )
    pictures = list(frames(source))
    sizes, likeness = [], []
    for quality in (20, 60, 95):
        path = tmp_path / f"{quality}.mkv"
        known = facts(source)
        with ClipWriter(path, source, known, choose(known, "mkv", codec), quality=quality) as clip:
            for frame in pictures:
                clip.encode(frame)
        sizes.append(path.stat().st_size)
        likeness.append(
            np.mean([ssim(new, old.planes[0]) for (_, new), old in zip(made.decoded(path), pictures, strict=True)])
        )
    assert sizes == sorted(sizes)
    assert likeness == sorted(likeness)


def test_rate_factors_never_rise_with_quality() -> None:
    for name in (*encoders.SOFTWARE.values(), *encoders.NVENC.values()):
        if name != "ffv1":
            factors = [rate_factor(name, quality) for quality in range(1, 101)]
            assert factors == sorted(factors, reverse=True)


def test_nvenc_without_a_gpu_leaves_the_work_to_the_processor_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("there is a GPU")
    usable.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert encoder("h264", Means("nvenc")) == "libx264"
    assert "h264_nvenc" in caplog.text


def test_vp9_has_no_nvenc() -> None:
    assert encoder("vp9", Means("nvenc")) == "libvpx-vp9"


GIF = replace(PLAIN, container="gif", codec="gif", pixel_format="gbrap", alpha=True)
DEEP = replace(PLAIN, pixel_format="yuv420p10le", depth=10)
CHOICES = [
    (PLAIN, "same", "same", ("mp4", "h264", "yuv420p", ())),
    (PLAIN, "mov", "av1", ("mov", "h264", "yuv420p", ("codec_changed",))),
    (PLAIN, "webm", "same", ("webm", "vp9", "yuv420p", ("codec_changed",))),
    (replace(PLAIN, codec="vp8"), "webm", "same", ("webm", "vp9", "yuv420p", ("codec_changed",))),
    (replace(DEEP, codec="prores"), "mov", "same", ("mov", "h265", "yuv420p10le", ("codec_changed",))),
    (replace(DEEP, codec="vp9"), "webm", "same", ("webm", "av1", "yuv420p10le", ("codec_changed",))),
    (replace(PLAIN, pixel_format="yuv444p"), "mkv", "av1", ("mkv", "av1", "yuv420p", ("chroma_reduced",))),
    (replace(DEEP, pixel_format="yuv420p12le"), "mkv", "h264", ("mkv", "h264", "yuv420p10le", ("depth_reduced",))),
    (GIF, "mp4", "same", ("mp4", "h264", "yuv420p", ("alpha_dropped", "chroma_reduced"))),
    (GIF, "webm", "same", ("webm", "vp9", "yuva420p", ("chroma_reduced",))),
    (replace(PLAIN, pixel_format="gray"), "webm", "vp9", ("webm", "vp9", "yuv420p", ())),
    (PLAIN, "gif", "same", ("gif", "ffv1", "yuv420p", ())),
]


@pytest.mark.parametrize(("known", "container", "codec", "wanted"), CHOICES)
def test_what_is_written_is_what_loses_least(
    known: Facts, container: str, codec: str, wanted: tuple[str, str, str, tuple[str, ...]]
) -> None:
    found = choose(known, container, codec)
    assert (found.container, found.codec, found.pixel_format, found.warnings) == wanted
