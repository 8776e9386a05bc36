"""Frames out of a process of its own: the same as in one process, in step with who takes them, whatever happens."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import psutil
import pytest
from PIL import Image

from shared.errors import TransientError
from shared.isolated import frames as apart
from shared.isolated.facts import facts
from shared.isolated.frames import decoded
from shared.rejections import MediaCorruptError, MediaTruncatedError, NoVideoStreamError
from shared.video import planes
from shared.video.facts import Facts
from shared.video.frame import Frame
from tests.unit.video.made import Recipe, make

DATA = Path(__file__).parents[2] / "data"
VIDEO = DATA / "video"
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
LONG = Recipe(ticks=tuple(range(0, 200 * 512, 512)), size=(160, 96))


def look(path: Path) -> Facts:
    return facts(path, max_pixels=50_000_000, max_seconds=600, max_frames=36_000)


def copied(frame: Frame) -> Frame:
    return replace(frame, planes=tuple(plane.copy() for plane in frame.planes))


def all_of(path: Path, **more: int) -> tuple[list[Frame], tuple[str, ...]]:
    with decoded(path, look(path), **more) as frames:
        return [copied(frame) for frame in frames], frames.damage


def wait_for(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("name", "frames"),
    [
        ("no_audio.mp4", 50),
        ("h264_10bit.mp4", 50),
        ("hlg_10bit_hevc.mp4", 50),
        ("full_range_yuvj.mp4", 25),
        ("odd_101x77.webm", 50),
        ("moov_at_end_large.mp4", 25),
        ("cover_art.mp4", 50),
        ("audio_stream_first.mp4", 50),
        ("one_frame.mp4", 1),
    ],
)
def test_vid_05_vid_07_frames_are_those_of_the_decoder_bit_for_bit(name: str, frames: int) -> None:
    found, damage = all_of(VIDEO / name)
    assert (len(found), damage) == (frames, ())
    with av.open(str(VIDEO / name)) as container:
        for frame, reference in zip(found, container.decode(video=0), strict=True):
            assert (frame.pts, frame.duration, frame.key) == (reference.pts, reference.duration, reference.key_frame)
            plane = reference.planes[0]
            kind = frame.planes[0].dtype
            samples = np.frombuffer(memoryview(plane), kind).reshape(plane.height, -1)[:, : plane.width]
            assert np.array_equal(frame.planes[0], samples)
            assert not frame.damaged


def test_vid_05_full_range_black_and_white(tmp_path: Path) -> None:
    """From a file to what analysis sees: 0 and 255, as the picture that was encoded."""
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"crf": "10"})
        stream.width, stream.height, stream.pix_fmt = 128, 64, "yuvj420p"
        stream.codec_context.color_range = 2
        halves = np.zeros((64, 128, 3), np.uint8)
        halves[:, 64:] = 255
        frame = av.VideoFrame.from_ndarray(halves, format="rgb24").reformat(format="yuvj420p", dst_color_range=2)
        for packet in [*stream.encode(frame), *stream.encode()]:
            out.mux(packet)
    known = look(path)
    assert known.colour.full_range
    with decoded(path, known) as frames:
        seen = planes.bgr(next(frames), (0, 0, 128, 64), known)
    assert seen[:, :56].max() <= 3
    assert seen[:, 72:].min() >= 252


def test_vid_11_alpha_is_decoded() -> None:
    found, _ = all_of(VIDEO / "alpha_vp9.webm")
    assert len(found) == 25
    assert abs(float((found[0].planes[3] == 0).mean()) - 0.587) <= 0.02
    assert found[0].key


def test_vid_12_scene_cuts_are_told() -> None:
    found, _ = all_of(VIDEO / "scene_cuts_1_0_2_faces.mp4")
    assert [number for number, frame in enumerate(found) if frame.cut] == [10, 20]
    steady, _ = all_of(VIDEO / "no_audio.mp4")
    assert not any(frame.cut for frame in steady)


@pytest.mark.parametrize("name", ["anim_3frames.gif", "anim_3frames.webp", "anim_3frames_apng.png"])
def test_img_06_animations_are_composed(name: str) -> None:
    from PIL import Image

    path = DATA / "image" / name
    known = look(path)
    found, damage = all_of(path)
    base = Fraction(*known.time_base)
    assert ([frame.duration * base * 1000 for frame in found][:2], damage) == ([100, 300], ())
    with Image.open(path) as image:
        for number, frame in enumerate(found):
            image.seek(number)
            wanted = np.asarray(image.convert("RGB"))
            got = planes.bgr(frame, (0, 0, *known.shown), known)[..., ::-1]
            assert np.abs(got.astype(int) - wanted).max() <= 1


def test_a_start_in_the_middle(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", LONG)
    found, _ = all_of(path, start=100 * 512)
    assert [frame.pts for frame in found] == list(range(100 * 512, 200 * 512, 512))


def test_the_ring_is_bounded_and_what_is_held_stays(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mkv", replace(LONG, container="mkv"))
    whole, _ = all_of(path)
    held: list[Frame] = []
    with decoded(path, look(path), held=5) as frames:
        for number, frame in enumerate(frames):
            held = [*held, frame][-6:]
            for back, kept in enumerate(reversed(held)):
                assert np.array_equal(kept.planes[0], whole[number - back].planes[0])
            for plane in frame.planes:
                plane[:1] = plane[:1]  # may be written to
    assert number == 199


@linux
def test_the_decoder_waits_for_who_takes_its_frames(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", LONG)
    with decoded(path, look(path)) as frames:
        next(frames)
        fork = forks()[0]
        wait_for(lambda: fork.status() == psutil.STATUS_SLEEPING)
        wait_for(lambda: stands_still(fork))
        assert len([1 for _ in frames]) == 199


def stands_still(process: psutil.Process) -> bool:
    before = process.cpu_times().user
    time.sleep(0.3)
    return process.cpu_times().user == before


def forks() -> list[psutil.Process]:
    process = apart._helper._process
    assert process is not None
    wait_for(lambda: bool(psutil.Process(process.pid).children()))
    return psutil.Process(process.pid).children()


@linux
def test_who_stops_early_leaves_nothing_behind(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", LONG)
    known = look(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with decoded(path, known) as frames:
            next(frames)
    process = apart._helper._process
    assert process is not None
    wait_for(lambda: not psutil.Process(process.pid).children())
    assert len(os.listdir("/proc/self/fd")) <= before + 1


@linux
@pytest.mark.parametrize(
    ("number", "error", "reason"),
    [
        (signal.SIGSEGV, MediaCorruptError, "crash"),
        (signal.SIGXCPU, MediaCorruptError, "time"),
        (signal.SIGALRM, MediaCorruptError, "time"),
        (signal.SIGKILL, TransientError, ""),
    ],
)
def test_a_decoder_that_dies_is_an_error_of_ours(
    tmp_path: Path, number: signal.Signals, error: type[MediaCorruptError], reason: str
) -> None:
    path = make(tmp_path / "a.mp4", LONG)
    with decoded(path, look(path)) as frames:
        next(frames)
        forks()[0].send_signal(number)
        with pytest.raises(error) as caught:
            list(frames)
    assert caught.value.context.get("reason", "") == reason
    assert len(all_of(path)[0]) == 200, "the next one has a decoder again"


@linux
def test_a_helper_that_dies_is_no_fault_of_the_videos(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", LONG)

    def take() -> None:
        with decoded(path, look(path)) as frames:
            next(frames)
            process = apart._helper._process
            assert process is not None
            process.kill()
            list(frames)

    with pytest.raises(TransientError):
        take()
    assert len(all_of(path)[0]) == 200


def test_damaged_frames_are_flagged_and_counted(tmp_path: Path) -> None:
    data = bytearray(make(tmp_path / "a.mkv", replace(LONG, container="mkv", keys=50)).read_bytes())
    known = look(tmp_path / "a.mkv")
    middle = len(data) // 2
    data[middle : middle + 3000] = os.urandom(3000)
    hurt = tmp_path / "b.mkv"
    hurt.write_bytes(data)
    with decoded(hurt, known) as frames:
        found = [frame.damaged for frame in frames]
    assert "frames_damaged" in frames.damage or "truncated" in frames.damage
    assert len(found) > 50
    assert not any(found[:40])


def test_a_clip_that_breaks_off_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    data = make(tmp_path / "a.mkv", replace(LONG, container="mkv")).read_bytes()
    short = tmp_path / "b.mkv"
    short.write_bytes(data[: len(data) // 2])
    found, damage = all_of(short)
    assert damage[:1] == ("truncated",)
    assert 50 < len(found) < 150


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    known = look(VIDEO / "no_audio.mp4")
    for name, error in (("no_moov.mp4", MediaTruncatedError), ("zero_frames.mp4", NoVideoStreamError)):
        with decoded(VIDEO / name, known) as frames, pytest.raises(error):
            list(frames)


def test_a_stream_that_changes_its_size_keeps_ours(tmp_path: Path) -> None:
    joined = tmp_path / "joined.webm"
    with av.open(str(joined), "w", format="webm") as out:
        for number, size in enumerate([(96, 64), (160, 96)]):
            part = make(tmp_path / f"{number}.webm", Recipe("webm", "vp9", size=size))
            with av.open(str(part)) as container:
                stream = out.streams.video[0] if number else out.add_stream_from_template(container.streams.video[0])
                for packet in container.demux(video=0):
                    if packet.size:
                        packet.pts, packet.dts = packet.pts + 2000 * number, packet.dts + 2000 * number
                        packet.stream = stream
                        out.mux(packet)
    found, damage = all_of(joined)
    assert (len(found), damage) == (48, ())
    assert {frame.planes[0].shape for frame in found} == {(64, 96)}
    assert found[0].planes[0].std() > 10
    assert found[-1].planes[0].std() > 10


def test_several_videos_at_once(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", LONG)
    known, counts = look(path), []

    def take() -> None:
        with decoded(path, known) as frames:
            counts.append(len([1 for _ in frames]))

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [200] * 6


def animation(path: Path) -> Path:
    shades = [Image.fromarray(np.random.default_rng(n).integers(0, 255, (40, 60, 3), np.uint8)) for n in range(5)]
    shades[0].save(path, "WEBP", save_all=True, append_images=shades[1:], duration=40, lossless=True)
    return path


@pytest.mark.parametrize("damaged", ["cut off", "broken within"])
def test_a_damaged_webp_gives_the_pictures_before(tmp_path: Path, damaged: str) -> None:
    """libwebp reads nothing of a file that is cut off."""
    whole = animation(tmp_path / "whole.webp").read_bytes()
    fourth = [found.start() for found in re.finditer(b"ANMF", whole)][3]
    broken = (
        whole[: fourth + 60] if damaged == "cut off" else whole[: fourth + 60] + bytes(999) + whole[fourth + 1059 :]
    )
    (tmp_path / "broken.webp").write_bytes(broken)
    frames, words = all_of(tmp_path / "broken.webp")
    assert [frame.pts for frame in frames] == [0, 40, 80]
    assert words == (("truncated",) if damaged == "cut off" else ("frames_damaged",))
