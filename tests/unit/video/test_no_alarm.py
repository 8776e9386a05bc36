"""What real writers leave in files that every player plays to their end is no damage: each case, met in a file of the
writer that is named, is made anew here. And what is damage beside it still is.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import cast

import av
import pytest
from av.video.stream import VideoStream

from shared.isolated import frames
from shared.video.facts import Facts
from tests.unit.video import made
from tests.unit.video.boxed import changed, element, listed, unsized, written
from tests.unit.video.chain import facts, through
from tests.unit.video.made import Recipe
from tests.unit.video.test_promises import FRAMES, INDEXED, STBL, fragmented, kept, many_clusters, plain, said, short

SEGMENT, SEEK_HEAD, CLUSTER = b"\x18\x53\x80\x67", b"\x11\x4d\x9b\x74", b"\x1f\x43\xb6\x75"
CUES = b"\x1c\x53\xbb\x6b"
BEHIND = {
    "a byte": b"\0",
    "zeros": bytes(4096),
    "the end of a line": b"\r\n",
    "a tag": b"TAG" + b"x" * 125,
    "what a phone adds": b"SEFHe\0\0\0\1\0\0\0" * 3 + b"SEFT",
    "noise": b"\xff" * 700,
}


def good(path: Path, count: int = FRAMES) -> Facts:
    """Neither the container nor a picture is damaged, and as many come out as were counted."""
    found = facts(path)
    with frames.decoded(path, found) as pictures:
        decoded = sum(1 for _ in pictures)
    assert (found.damage, pictures.damage, found.frames, decoded) == ((), (), count, count)
    return found


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("container", ["mp4", "mov", "mkv", "webm"])
def test_bytes_behind_the_film(container: str, behind: str, tmp_path: Path) -> None:
    codec = "vp9" if container == "webm" else "h264"
    data = made.make(tmp_path / f"source.{container}", Recipe(container, codec)).read_bytes()
    good(kept(tmp_path, data + BEHIND[behind]))


def test_bytes_behind_fragments(tmp_path: Path) -> None:
    data = fragmented(tmp_path, INDEXED)
    assert listed(data)[-1][0] == b"mfra"
    good(kept(tmp_path, data + BEHIND["a tag"]))
    assert short(kept(tmp_path, data[: data.rindex(b"moof") - 4] + BEHIND["a tag"]))


def packed(body: bytes, bits: int) -> bytes:
    """A table of sizes in fewer bits (8.7.3.3)."""
    count = struct.unpack(">I", body[8:12])[0]
    sizes = struct.unpack(f">{count}I", body[12:])
    kind = {8: "B", 16: "H"}[bits]
    return struct.pack(">4xII", bits, count) + struct.pack(f">{count}{kind}", *sizes)


def test_a_compact_table_of_sizes(tmp_path: Path) -> None:
    def compact(body: bytes) -> bytes:
        return written([(b"stz2" if name == b"stsz" else name, own) for name, own in listed(body)])

    data = changed(plain(tmp_path), (*STBL, b"stsz"), lambda body: packed(body, 16))
    good(kept(tmp_path, changed(data, STBL, compact)))
    bare = changed(data, STBL, compact).replace(b"edts", b"skip")
    good(kept(tmp_path, bare))
    half = changed(bare, (*STBL, b"stts"), lambda body: body[:8] + struct.pack(">I", FRAMES // 2) + body[12:])
    assert short(kept(tmp_path, half))


def test_a_packed_index_of_old_quicktime(tmp_path: Path) -> None:
    def pack(name: bytes, body: bytes) -> bytes:
        whole = written([(name, body)])
        return written(
            [(b"cmov", written([(b"dcom", b"zlib"), (b"cmvd", struct.pack(">I", len(whole)) + zlib.compress(whole))]))]
        )

    boxes = listed(plain(tmp_path, "aac"))
    good(
        kept(
            tmp_path, written([(name, pack(name, body) if name == b"moov" else body) for name, body in boxes]), "a.mov"
        )
    )


def test_two_indices_that_tell_of_the_same_segments(tmp_path: Path) -> None:
    data = fragmented(tmp_path, INDEXED)
    boxes = [box for box in listed(data) for _ in range(2 if box[0] == b"sidx" else 1)]
    good(kept(tmp_path, written(boxes)))
    assert short(kept(tmp_path, written([box for box in boxes if box[0] != b"mfra"][:-2])))


@pytest.mark.parametrize("tone", [False, True], ids=["silent", "with a short sound"])
@pytest.mark.parametrize(("container", "codec"), [("mkv", "libx264"), ("webm", "libvpx")])
def test_one_picture_that_is_shown_for_long(container: str, codec: str, tone: bool, tmp_path: Path) -> None:
    """FFmpeg, GStreamer and Mediabunny tell how long only in the track or in the length of all."""
    source = made.make(tmp_path / "tone.mkv", Recipe("mkv", audio=("libopus",)))
    with av.open(str(tmp_path / f"one.{container}"), "w") as out, av.open(str(source)) as held:
        stream = cast("VideoStream", out.add_stream(codec, rate=Fraction(1, 5)))
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        sounds = [out.add_stream_from_template(one) for one in held.streams.audio if tone]
        frame = av.VideoFrame.from_ndarray(made.picture(0, (96, 64)), format="rgb24").reformat(format="yuv420p")
        frame.pts, frame.time_base = 0, Fraction(5)
        out.mux([*stream.encode(frame), *stream.encode()])
        for packet in [packet for packet in held.demux(audio=0) if packet.size and sounds]:
            packet.stream = sounds[0]
            out.mux(packet)
    good(tmp_path / f"one.{container}", 1)


def test_times_of_the_first_pictures_that_are_not_in_their_order(tmp_path: Path) -> None:
    """VLC's first packets have no time of decoding, and the first picture gets the time of the third."""
    source = made.make(tmp_path / "source.mp4", Recipe())
    with av.open(str(source)) as held, av.open(str(tmp_path / "late.mkv"), "w") as out:
        stream = out.add_stream_from_template(held.streams.video[0])
        for number, packet in enumerate(packet for packet in held.demux(video=0) if packet.size):
            packet.stream = stream
            packet.pts = (packet.pts or 0) + (0 if number else 2 * 512)
            out.mux(packet)
    found = good(tmp_path / "late.mkv")
    again = through(tmp_path / "late.mkv", tmp_path).path
    assert facts(again).frames == found.frames


def forgotten(data: bytes) -> bytes:
    """As a browser leaves a recording that it never closed: no list of places."""
    place, begin, size = element(data, SEEK_HEAD)
    room = begin + size - place - 9
    void = b"\xec\x01" + room.to_bytes(7, "big") + bytes(room)
    return data[:place] + void + data[begin + size :]


def test_a_recording_of_a_browser_whose_last_piece_never_came(tmp_path: Path) -> None:
    """Each piece that Chromium hands out ends with the first byte of the next block."""
    data = unsized(forgotten(many_clusters(tmp_path, "webm")), SEGMENT)
    live = unsized(data[: data.rindex(CLUSTER)], CLUSTER)
    count = facts(kept(tmp_path, said(live, 0))).frames
    path = kept(tmp_path, said(live, 0) + b"\xa3", "piece.webm")
    good(path, count)
    through(path, tmp_path)
    assert short(kept(tmp_path, said(live, 0) + b"\xa3\x43\xc6\x81\x00\x00\x80torn"))


def swallowed(data: bytes) -> bytes:
    """The first cluster has the size of all, the others none, and the first byte of a next block stands at the end."""
    first, begin, _ = element(data, CLUSTER)
    rest = data[begin : data.rindex(CUES)] + b"\xa3"
    places = [at for at in range(len(rest)) if rest.startswith(CLUSTER, at)]
    for at in reversed(places):
        rest = rest[:at] + unsized(rest[at:], CLUSTER)
    assert len(places) > 1
    return data[:first] + CLUSTER + (1 << 56 | len(rest)).to_bytes(8, "big") + rest


def test_a_length_by_the_clock_on_the_wall(tmp_path: Path) -> None:
    """As fix-webm-duration puts it into a recording of a screen on which nothing moved any more."""
    data = said(many_clusters(tmp_path, "webm"), 2.5)
    good(kept(tmp_path, forgotten(data)), 100)
    good(kept(tmp_path, unsized(swallowed(forgotten(data)), SEGMENT)), 100)
    assert short(kept(tmp_path, data))


def animation(folder: Path) -> bytes:
    made.make(folder / "film.mp4", Recipe())
    return through(folder / "film.mp4", folder, container="gif").path.read_bytes()


TAILS: dict[str, Callable[[bytes], bytes]] = {
    "a comment behind": lambda data: data[:-1] + b"\x21\xfe\x05hello\0;",
    "a control behind": lambda data: data[:-1] + b"\x21\xf9\x04\4\x0a\0\0\0;",
    "metadata behind": lambda data: data[:-1] + b"\x21\xff\x0bXMP DataXMP" + b"\x03<x>" * 20 + b"\0;",
    "a zero behind": lambda data: data[:-1] + b"\0;",
    "no end": lambda data: data[:-1],
    "more behind the end": lambda data: data + b"\0\0junk",
}


@pytest.mark.parametrize("tail", TAILS)
def test_what_stands_behind_the_last_picture_of_a_gif(tail: str, tmp_path: Path) -> None:
    data = animation(tmp_path)
    assert data[-2:] == b"\0;"
    plain_end = good(kept(tmp_path, data, "whole.gif")).end
    path = kept(tmp_path, TAILS[tail](data), "tail.gif")
    assert good(path).end == plain_end
    again = through(path, tmp_path).path
    assert facts(again).frames == FRAMES


@pytest.mark.parametrize("missing", [2, 3, 40])
def test_a_gif_that_breaks_off_in_a_picture(missing: int, tmp_path: Path) -> None:
    assert short(kept(tmp_path, animation(tmp_path)[:-missing], "cut.gif"))


def test_a_picture_of_a_png_that_cannot_be_unpacked_is_left_out(tmp_path: Path) -> None:
    made.make(tmp_path / "film.mp4", Recipe())
    data = bytearray(through(tmp_path / "film.mp4", tmp_path, container="png").path.read_bytes())
    at = data.index(b"fdAT", len(data) // 2) + 40
    data[at : at + 60] = bytes(60)
    path = kept(tmp_path, bytes(data), "torn.png")
    found = facts(path)
    with frames.decoded(path, found) as pictures:
        decoded = sum(1 for _ in pictures)
    assert (found.frames, decoded, pictures.damage) == (FRAMES, FRAMES - 1, ("frames_damaged",))
