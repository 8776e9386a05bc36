"""A file that holds less than it says is damaged, whatever the demuxer thinks; one that only rounds is not."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import av
import pytest

from shared.errors import RejectedError
from shared.rejections import MediaTruncatedError
from shared.video.faults import check_damage
from tests.unit.video import made
from tests.unit.video.boxed import changed, element, listed, number, unsized, written
from tests.unit.video.chain import facts, through
from tests.unit.video.made import Recipe
from tests.unit.video.test_kept import KINDS, PAIRS, recipe

CASES = Path("tests/data/video")
STBL = (b"moov", b"trak", b"mdia", b"minf", b"stbl")
MDHD, TKHD, MVHD = (b"moov", b"trak", b"mdia", b"mdhd"), (b"moov", b"trak", b"tkhd"), (b"moov", b"mvhd")
ELST = (b"moov", b"trak", b"edts", b"elst")
VIDEO = b"vide"
FRAMES = 24


def half(value: int) -> int:
    return value // 2


def double(value: int) -> int:
    return value * 2


def tables(data: bytes, *names: bytes) -> bytes:
    """The video's tables say half as much: samples, their times, the chunks that they lie in."""
    for name in names:
        at = {b"stsz": 8, b"stts": 8, b"stco": 4}[name]
        data = changed(data, (*STBL, name), number(at, half), VIDEO)
    return data


def lengths(data: bytes, alter: Callable[[int], int]) -> bytes:
    """What is said of the video's length, and of the film's."""
    for path, at in ((MDHD, 16), (TKHD, 20), (ELST, 8)):
        data = changed(data, path, number(at, alter), VIDEO)
    return changed(data, MVHD, number(16, alter))


ALL = (b"stsz", b"stts", b"stco")
LIES: dict[str, Callable[[bytes], bytes]] = {
    "fewer sizes": lambda data: tables(data, b"stsz"),
    "fewer times": lambda data: tables(data, b"stts"),
    "fewer chunks": lambda data: tables(data, b"stco"),
    "all tables shorter than the track": lambda data: tables(data, *ALL),
    "all tables shorter than the data": lambda data: lengths(tables(data, *ALL), half),
    "a track shorter than its media": lambda data: changed(data, MDHD, number(16, double), VIDEO),
    "a film longer than its tracks": lambda data: changed(data, MVHD, number(16, lambda value: 5 * value)),
    "a track longer than its media": lambda data: changed(data, TKHD, number(20, lambda value: 5 * value), VIDEO),
    "an edit longer than the media": lambda data: changed(data, ELST, number(8, double), VIDEO),
    "a sound longer than its samples": lambda data: changed(data, MDHD, number(16, lambda value: 5 * value), b"soun"),
}


def plain(folder: Path, *sounds: str) -> bytes:
    """With a chunk for every frame where there is sound, and its index at the end."""
    return made.make(folder / "source.mp4", Recipe(audio=sounds)).read_bytes()


def kept(folder: Path, data: bytes, name: str = "lies.mp4") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def short(path: Path) -> bool:
    """Whether it is refused, and told as truncated where it is to be finished."""
    found = facts(path)
    if not found.damage:
        return False
    with pytest.raises(RejectedError):
        check_damage(found.damage, "refuse")
    check_damage(found.damage, "finish")
    assert "truncated" in found.damage
    return True


SILENT = [lie for lie in LIES if "sound" not in lie and lie != "fewer chunks"]
"""Without sound all frames are in one chunk."""


@pytest.mark.parametrize(("lie", "sounds"), [*product(LIES, [("aac",)]), *product(SILENT, [()])], ids=str)
def test_an_index_that_says_less_than_was_promised(lie: str, sounds: tuple[str, ...], tmp_path: Path) -> None:
    data = plain(tmp_path, *sounds)
    if lie.startswith("all") and not sounds:
        data = changed(data, (*STBL, b"stco"), number(4, double), VIDEO)  # which halving makes one again
    assert not facts(tmp_path / "source.mp4").damage
    assert short(kept(tmp_path, LIES[lie](data)))


def front(folder: Path) -> bytes:
    """With its index first."""
    plain(folder)
    return through(folder / "source.mp4", folder).path.read_bytes()


@pytest.mark.parametrize("ending", ["open", "mended"])
@pytest.mark.parametrize("share", [0.95, 0.7, 0.4])
def test_a_file_cut_off_whose_last_box_does_not_show_it(ending: str, share: float, tmp_path: Path) -> None:
    boxes = listed(front(tmp_path))
    body = dict(boxes)[b"mdat"]
    cut = body[: int(len(body) * share)]
    data = written([box for box in boxes if box[0] != b"mdat"])
    data += written([(b"mdat", cut)]) if ending == "mended" else b"\0\0\0\0mdat" + cut
    assert short(kept(tmp_path, data))


def fragmented(folder: Path, flags: str, audio: tuple[str, ...] = ()) -> bytes:
    """In three fragments."""
    source = made.make(folder / "source.mp4", Recipe(ticks=tuple(range(0, FRAMES * 2560, 2560)), audio=audio))
    with (
        av.open(str(source)) as held,
        av.open(str(folder / "parts.mp4"), "w", container_options={"movflags": flags}) as out,
    ):
        streams = {stream.index: out.add_stream_from_template(stream) for stream in held.streams}
        for packet in held.demux():
            if packet.size:
                packet.stream = streams[packet.stream.index]
                out.mux(packet)
    return (folder / "parts.mp4").read_bytes()


PLAIN, INDEXED = "frag_keyframe+empty_moov+default_base_moof", "dash+global_sidx+frag_keyframe"
OLD = "frag_keyframe+empty_moov+omit_tfhd_offset"
FRAGMENTS = (PLAIN, INDEXED, OLD, "frag_keyframe", "frag_keyframe+separate_moof+empty_moov", "dash+frag_keyframe")


def without_last(data: bytes, count: int) -> bytes:
    """Without the last fragments and what comes behind them; `count`: boxes, two to a fragment."""
    boxes = [box for box in listed(data) if box[0] != b"mfra"]
    return written(boxes[: len(boxes) - count])


def whole_film(data: bytes) -> bytes:
    """With its whole length where a file of fragments tells it (`mehd`)."""
    trex = lambda body: written([(b"mehd", struct.pack(">II", 0, 4800)), *listed(body)])  # noqa: E731
    return changed(changed(data, (b"moov", b"mvex"), trex), MVHD, number(12, lambda _: 1000))


@pytest.mark.parametrize(
    ("flags", "damage"),
    [
        (INDEXED, lambda data: without_last(data, 2)),
        (PLAIN, lambda data: whole_film(without_last(data, 2))),
        (PLAIN, lambda data: without_last(data, 1)),
        (OLD, lambda data: without_last(data, 1)),
        (PLAIN, lambda data: without_last(data, 1) + b"\0\0\0\0mdat" + bytes(range(20))),
    ],
    ids=["index", "length", "no data", "no data, places not said", "less data"],
)
def test_a_file_without_its_last_fragments(flags: str, damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    assert short(kept(tmp_path, damage(fragmented(tmp_path, flags))))


def without_last_cluster(data: bytes) -> bytes:
    """As if it had been written as far as that, and its outer sizes never."""
    data = unsized(data, b"\x18\x53\x80\x67")
    return data[: data.rindex(b"\x1f\x43\xb6\x75")]


def many_clusters(folder: Path, container: str) -> bytes:
    wanted = Recipe(container, "vp9" if container == "webm" else "h264", tuple(range(0, 4000, 40)), made.MILLISECOND)
    source = made.make(folder / f"source.{container}", wanted)
    with (
        av.open(str(source)) as held,
        av.open(
            str(folder / "clusters.mkv"),
            "w",
            format=made.FORMATS[container],
            container_options={"cluster_time_limit": "900"},
        ) as out,
    ):
        stream = out.add_stream_from_template(held.streams.video[0])
        for packet in held.demux(video=0):
            if packet.size:
                packet.stream = stream
                out.mux(packet)
    return (folder / "clusters.mkv").read_bytes()


def said(data: bytes, factor: float) -> bytes:
    """With another length."""
    _, begin, size = element(data, b"\x44\x89")
    assert size == 8
    (length,) = struct.unpack(">d", data[begin : begin + 8])
    return data[:begin] + struct.pack(">d", length * factor) + data[begin + 8 :]


@pytest.mark.parametrize("container", ["mkv", "webm"])
@pytest.mark.parametrize("lie", ["no end", "no end and no length", "longer"])
def test_matroska_that_is_shorter_than_it_says(container: str, lie: str, tmp_path: Path) -> None:
    data = many_clusters(tmp_path, container)
    assert not facts(kept(tmp_path, data)).damage
    assert not facts(kept(tmp_path, unsized(data, b"\x18\x53\x80\x67"))).damage
    data = said(data, 1.3) if lie == "longer" else without_last_cluster(data)
    data = said(data, 0) if "no length" in lie else data  # then only where its cues should be tells
    assert short(kept(tmp_path, data))


@pytest.mark.parametrize(("pair", "kind"), [*product(PAIRS, range(len(KINDS)))], ids=str)
def test_no_good_clip_is_called_short(pair: tuple[str, str], kind: int, tmp_path: Path) -> None:
    wanted = recipe(*pair, KINDS[kind])
    source = made.make(tmp_path / f"source.{wanted.container}", wanted)
    assert facts(source).damage == ()
    if pair[1] == "h264":
        assert facts(through(source, tmp_path).path).damage == ()


VARIED = tuple(at * 512 for at in (0, 1, 2, 7, 8, 9, 30, 31, 32, 90))
ODD = {
    "frames of very unlike lengths": Recipe(ticks=VARIED),
    "matroska of very unlike lengths": Recipe("mkv", ticks=VARIED, audio=("libopus",)),
    "many frames back": Recipe(options=(("bf", "8"), ("b-adapt", "0"), ("x264-params", "b-pyramid=normal"))),
    "two frames": Recipe(ticks=(0, 512), audio=("aac",)),
    "begins before its time": Recipe(ticks=tuple(range(-4 * 512, 20 * 512, 512)), audio=("aac",)),
    "sound begins late": Recipe(audio=("aac",), audio_start=3.0),
    "sound in pieces": Recipe("mov", audio=("pcm_s16le", "aac")),
    "one frame a second": Recipe(ticks=tuple(range(0, 5 * 12800, 12800)), audio=("aac",)),
    "thirty of 1001": Recipe(ticks=tuple(range(0, 60 * 1001, 1001)), time_base=Fraction(1, 30000)),
    "chapters": Recipe(chapters=3, audio=("aac",)),
}


@pytest.mark.parametrize("name", ODD)
def test_no_odd_clip_is_called_short(name: str, tmp_path: Path) -> None:
    assert facts(made.make(tmp_path / f"source.{ODD[name].container}", ODD[name])).damage == ()


@pytest.mark.parametrize("flags", FRAGMENTS)
@pytest.mark.parametrize("audio", [(), ("aac",)], ids=["silent", "with sound"])
def test_no_whole_file_of_fragments_is_called_short(flags: str, audio: tuple[str, ...], tmp_path: Path) -> None:
    data = fragmented(tmp_path, flags, audio)
    assert facts(tmp_path / "parts.mp4").damage == ()
    if flags in (PLAIN, OLD) and not audio:
        assert facts(kept(tmp_path, whole_film(data))).damage == ()
        assert facts(kept(tmp_path, without_last(data, 2))).damage == (), "nobody said that there would be more"


def test_places_beyond_four_gigabytes_are_read(tmp_path: Path) -> None:
    def longer(body: bytes) -> bytes:
        places = struct.unpack(f">{(len(body) - 8) // 4}I", body[8:])
        return body[:8] + struct.pack(f">{len(places)}Q", *places)

    data = changed(plain(tmp_path, "aac"), (*STBL, b"stco"), longer)
    whole = data.replace(b"stco", b"co64")
    assert facts(kept(tmp_path, whole)).damage == ()
    assert facts(kept(tmp_path, whole)).frames == FRAMES
    with pytest.raises(MediaTruncatedError):  # not one frame is there
        facts(kept(tmp_path, changed(whole, (*STBL, b"co64"), number(8, lambda value: value + 2**40, 8), VIDEO)))


def test_an_animation_with_fewer_pictures_than_it_says(tmp_path: Path) -> None:
    data = Path("tests/data/image/anim_3frames_apng.png").read_bytes()
    assert facts(kept(tmp_path, data, "whole.png")).damage == ()
    said = data.replace(b"acTL\0\0\0\3", b"acTL\0\0\0\5")
    assert said != data
    assert short(kept(tmp_path, said, "said.png"))


def test_zeros_and_thumbnails_among_the_data_are_no_damage(tmp_path: Path) -> None:
    boxes = listed(plain(tmp_path))
    room = [(name, body + bytes(len(body)) if name == b"mdat" else body) for name, body in boxes]
    assert facts(kept(tmp_path, written(room))).damage == ()
    small = [(name, body + b"\xff" * (len(body) // 10) if name == b"mdat" else body) for name, body in boxes]
    assert facts(kept(tmp_path, written(small))).damage == ()


def test_a_track_without_any_of_its_frames_is_truncated(tmp_path: Path) -> None:
    none = {b"stsz": 8, b"stts": 4, b"stco": 4}
    data = plain(tmp_path)
    for name, at in none.items():
        data = changed(data, (*STBL, name), number(at, lambda _: 0), VIDEO)
    with pytest.raises(MediaTruncatedError):
        facts(kept(tmp_path, data))


def test_what_cannot_be_read_of_an_index_is_no_crash(tmp_path: Path) -> None:
    data = plain(tmp_path, "aac")
    for name in (b"stsz", b"stts", b"stsc", b"stco", b"ctts"):
        huge = changed(data, (*STBL, name), number(8 if name == b"stsz" else 4, lambda _: 2**32 - 1))
        try:
            facts(kept(tmp_path, huge))
        except (RejectedError, MemoryError):  # of FFmpeg's, in the limited process
            continue
    assert replace(facts(tmp_path / "source.mp4"), damage=()).frames == FRAMES
