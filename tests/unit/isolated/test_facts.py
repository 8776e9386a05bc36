"""What a video is, by a process of its own: the field's awkward files, and everything that is no video."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import pytest

from shared.errors import WakeswapError
from shared.isolated.facts import facts
from shared.isolated.frames import decoded
from shared.rejections import (
    ImageTooLargeError,
    ImageTooSmallError,
    MediaCorruptError,
    MediaEmptyError,
    MediaTruncatedError,
    NoVideoStreamError,
    UnsupportedMediaTypeError,
    VideoTooLongError,
)
from shared.video.facts import Colour, Facts
from tests.unit.video.made import Recipe, make, ticks

DATA = Path(__file__).parents[2] / "data"
VIDEO = DATA / "video"


def look(path: Path, **more: int) -> Facts:
    return facts(path, **({"max_pixels": 50_000_000, "max_seconds": 600, "max_frames": 36_000} | more))


def written(folder: Path, data: bytes, name: str = "clip.mp4") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "rotation", "shown"),
    [
        ("phone_portrait_coded_192x128.mp4", 90, (128, 192)),
        ("rotate_matrix_180.mp4", 180, (192, 192)),
        ("no_audio.mp4", 0, (192, 192)),
    ],
)
def test_vid_01_which_way_up(name: str, rotation: int, shown: tuple[int, int]) -> None:
    found = look(VIDEO / name)
    assert (found.rotation, found.shown, found.frames) == (rotation, shown, 50)


@pytest.mark.parametrize("rotation", [90, 180, 270, -90])
def test_vid_01_ffmpegs_own_rotations(tmp_path: Path, rotation: int) -> None:
    found = look(make(tmp_path / "a.mp4", Recipe(rotation=rotation)))
    assert found.rotation == rotation % 360


@pytest.mark.parametrize(
    ("name", "index", "sounds", "languages"),
    [
        ("no_audio.mp4", 0, 0, []),
        ("two_audio_eng_deu.mp4", 0, 2, ["eng", "deu"]),
        ("audio_stream_first.mp4", 1, 1, ["und"]),
        ("audio_starts_400ms_late.mp4", 0, 1, ["und"]),
        ("cover_art.mp4", 0, 1, ["und"]),
    ],
)
def test_vid_03_the_video_among_its_streams(name: str, index: int, sounds: int, languages: list[str]) -> None:
    found = look(VIDEO / name)
    audio = [other for other in found.others if other.kind == "audio"]
    assert (found.index, found.frames, found.seconds) == (index, 50, 2.0)
    assert (len(audio), [other.language for other in audio]) == (sounds, languages)
    assert [other.kind for other in found.others if other.codec == "mjpeg"] == ["attachment"] * (
        name == "cover_art.mp4"
    )


@pytest.mark.parametrize(
    ("name", "frames"), [("moov_at_end_large.mp4", 25), ("moov_at_end.mp4", 50), ("faststart.mp4", 50)]
)
def test_vid_07_wherever_the_index_stands(name: str, frames: int) -> None:
    assert look(VIDEO / name).frames == frames


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("audio_only.mp4", NoVideoStreamError),
        ("zero_frames.mp4", NoVideoStreamError),
        ("no_moov.mp4", MediaTruncatedError),
        ("zero_bytes.mp4", MediaEmptyError),
        ("jpeg_named.mp4", NoVideoStreamError),
    ],
)
def test_vid_09_nothing_to_decode(name: str, error: type[WakeswapError]) -> None:
    with pytest.raises(error):
        look(VIDEO / name)


def test_vid_09_one_frame_has_a_rate() -> None:
    found = look(VIDEO / "one_frame.mp4")
    assert (found.frames, found.rate, found.seconds) == (1, (25, 1), 0.04)


def test_vid_05_colours_and_depth() -> None:
    hdr = look(VIDEO / "hlg_10bit_hevc.mp4")
    assert (hdr.codec, hdr.pixel_format, hdr.depth, hdr.colour) == ("hevc", "yuv420p10le", 10, Colour(False, 9, 18, 9))
    full = look(VIDEO / "full_range_yuvj.mp4")
    assert (full.pixel_format, full.colour.full_range) == ("yuv420p", True)
    assert look(VIDEO / "h264_10bit.mp4").pixel_format == "yuv420p10le"


def test_vid_11_alpha_beside_the_picture() -> None:
    found = look(VIDEO / "alpha_vp9.webm")
    assert (found.alpha, found.pixel_format, found.codec, found.container) == (True, "yuva420p", "vp9", "webm")


@pytest.mark.parametrize("name", ["anim_3frames.gif", "anim_3frames.webp", "anim_3frames_apng.png"])
def test_img_06_an_animation_is_a_video(name: str) -> None:
    found = look(DATA / "image" / name)
    assert (found.frames, found.loops, found.seconds) == (3, 0, 0.5)


@pytest.mark.parametrize("container", ["mp4", "mov", "mkv", "webm"])
def test_times_come_from_packets(tmp_path: Path, container: str) -> None:
    recipe = Recipe(container, "vp9" if container == "webm" else "h264", chapters=2)
    uneven = ticks([512, 1024, 512, 2560, 512, 512])
    found = look(make(tmp_path / f"a.{container}", replace(recipe, ticks=uneven)))
    base = Fraction(*found.time_base)
    assert (found.container, found.frames, found.chapters) == (container, 7, 2)
    assert found.start * base == 0
    assert abs((found.end - found.start) * base - Fraction(uneven[-1] + 512, 12800)) <= Fraction(1, 500)
    late = look(make(tmp_path / f"b.{container}", replace(recipe, ticks=tuple(tick + 6400 for tick in uneven))))
    assert abs(late.start * Fraction(*late.time_base) - Fraction(1, 2)) <= Fraction(1, 1000)


def test_what_an_edit_list_leaves_out_is_not_counted(tmp_path: Path) -> None:
    with av.open(str(make(tmp_path / "a.mp4", Recipe()))) as whole, av.open(str(tmp_path / "b.mp4"), "w") as out:
        stream = out.add_stream_from_template(whole.streams.video[0])
        for packet in whole.demux(video=0):
            if packet.size:
                packet.pts, packet.dts, packet.stream = packet.pts - 5 * 512, packet.dts - 5 * 512, stream
                out.mux(packet)
    found = look(tmp_path / "b.mp4")
    assert (found.frames, found.start, found.end) == (19, 0, 19 * 512)
    with decoded(tmp_path / "b.mp4", found) as frames:
        assert [frame.pts for frame in frames] == list(range(0, 19 * 512, 512))


def test_pixels_that_are_not_square(tmp_path: Path) -> None:
    assert look(make(tmp_path / "a.mp4", Recipe(aspect=Fraction(4, 3)))).sample_aspect == (4, 3)


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"max_seconds": 1}, VideoTooLongError),
        ({"max_frames": 49}, VideoTooLongError),
        ({"max_pixels": 192 * 192 - 1}, ImageTooLargeError),
    ],
)
def test_limits_of_the_tenant(limits: dict[str, int], error: type[WakeswapError]) -> None:
    assert look(VIDEO / "no_audio.mp4", max_seconds=2, max_frames=50, max_pixels=192 * 192).frames == 50
    with pytest.raises(error) as caught:
        look(VIDEO / "no_audio.mp4", **limits)
    assert caught.value.context


def test_too_small_for_a_face(tmp_path: Path) -> None:
    with pytest.raises(ImageTooSmallError):
        look(make(tmp_path / "a.mkv", Recipe("mkv", "vp9", size=(8, 8))))


LISTS = {
    "m3u8": b"#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
    "ffconcat": b"ffconcat version 1.0\nfile '/etc/passwd'\n",
    "sdp": b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nm=video 5004 RTP/AVP 96\n",
    "mpd": b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"/>',
    "avi": b"RIFF\x24\0\0\0AVI LIST" + bytes(100),
    "flv": b"FLV\x01\x05\0\0\0\x09" + bytes(100),
    "ts": b"G\x40\0\x10" + bytes(184),
    "ogg": b"OggS\0\x02" + bytes(100),
    "ebml": b"\x1a\x45\xdf\xa3\x87\x42\x82\x84evil" + bytes(100),
}


@pytest.mark.parametrize("kind", sorted(LISTS))
def test_playlists_scripts_and_other_containers_are_no_video(tmp_path: Path, kind: str) -> None:
    for name in (f"a.{kind}", "clip.mp4"):
        with pytest.raises(UnsupportedMediaTypeError):
            look(written(tmp_path, LISTS[kind], name))


def test_a_container_that_breaks_off_says_so(tmp_path: Path) -> None:
    whole = make(tmp_path / "a.mkv", Recipe("mkv")).read_bytes()
    found = look(written(tmp_path, whole[: len(whole) * 2 // 3], "b.mkv"))
    assert found.damage == ("truncated",)
    assert 0 < found.frames < 24
    first = make(tmp_path / "c.mp4", Recipe()).read_bytes()  # its index stands last
    with pytest.raises(MediaTruncatedError):
        look(written(tmp_path, first[: len(first) // 2]))
    front = (VIDEO / "faststart.mp4").read_bytes()
    assert look(written(tmp_path, front[: len(front) // 2])).damage == ("truncated",)
    with pytest.raises(MediaTruncatedError):
        look(written(tmp_path, front[: front.index(b"mdat")]))
    for name in ("anim_3frames.gif", "anim_3frames.webp", "anim_3frames_apng.png"):
        data = (DATA / "image" / name).read_bytes()
        assert "truncated" in look(written(tmp_path, data[:-20], name)).damage


def test_noise_in_a_container_never_is_more_than_a_refusal(tmp_path: Path) -> None:
    """The headers, byte for byte: whatever a demuxer makes of it, one of our errors or facts come out."""
    for name in ("faststart.mp4", "alpha_vp9.webm"):
        data = bytearray((VIDEO / name).read_bytes())
        for place in range(0, 1200, 41):
            hurt = bytearray(data)
            hurt[place] ^= 0xFF
            try:
                found = look(written(tmp_path, bytes(hurt)))
            except (MediaCorruptError, MediaTruncatedError, NoVideoStreamError, UnsupportedMediaTypeError):
                continue
            except (ImageTooLargeError, ImageTooSmallError, VideoTooLongError):
                continue
            assert found.frames > 0


def test_a_codec_that_is_not_let_in(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w", format="matroska") as out:
        stream = out.add_stream("snow", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for packet in [*stream.encode(av.VideoFrame(64, 48, "yuv420p")), *stream.encode()]:
            out.mux(packet)
    with pytest.raises(UnsupportedMediaTypeError):
        look(path)


@pytest.mark.parametrize("at", [0, -3], ids=["of no track", "of no kind"])
def test_a_block_that_a_demuxer_steps_over_in_silence_is_damage(tmp_path: Path, at: int) -> None:
    """The frame is missing; of what has no name, FFmpeg goes on at the next cluster."""
    clip = make(tmp_path / "a.mkv", Recipe("mkv", ticks=tuple(range(0, 960, 40)), time_base=Fraction(1, 1000)))
    data = bytearray(clip.read_bytes())
    whole = look(clip)
    with av.open(str(clip)) as held:
        place = at + ([packet.pos for packet in held.demux(video=0)][12] or 0)
    data[place : place + 2] = b"\x99\x99"
    found = look(written(tmp_path, bytes(data), "b.mkv"))
    assert (whole.frames, whole.damage) == (24, ())
    assert found.frames < 24
    assert found.damage == ("frames_damaged",)
