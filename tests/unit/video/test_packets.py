"""Parameter sets, messages and times, read from bytes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import av
import pytest

from shared.video import av1
from shared.video.groups import Group, groups, stands_alone
from shared.video.light import Light, light, messages
from shared.video.parameters import Sets, begins_with_header, h264, repeated, units_of
from shared.video.passing import Passing
from shared.video.texts import rewriter
from shared.video.times import decode_times
from shared.video.units import Bits, lengthed, payload, split, split_started, started
from tests.unit.video import made
from tests.unit.video.chain import through
from tests.unit.video.made import Recipe

UNITS = [b"\x67\x64\x00\x0a\xac", b"\x68\xee\x3c\x80", b"\x65\x88\x84"]


def test_both_ways_of_telling_units_apart() -> None:
    assert list(split(lengthed(UNITS))) == UNITS
    assert list(split_started(started(UNITS))) == UNITS
    assert list(split_started(b"\0\0\1" + UNITS[0] + b"\0\0\0\0\1" + UNITS[1])) == UNITS[:2]


@pytest.mark.parametrize("packet", [b"\0\0\0\x09ab", b"\0\0\0\0", b"\0\0"])
def test_lengths_that_do_not_add_up_are_refused(packet: bytes) -> None:
    with pytest.raises(ValueError, match="add up"):
        list(split(packet))


def test_numbers_of_the_standard() -> None:
    """H.264, table 9-2."""
    bits = Bits(bytes([0b1_010_011_0, 0b0100_0010, 0b1_0000000]))
    assert [bits.golomb() for _ in range(5)] == [0, 1, 2, 3, 4]
    assert payload(b"\x01\0\0\x03\x01\0\0\x03\0") == b"\x01\0\0\x01\0\0\0"


def test_numbers_without_end_are_none() -> None:
    for data in (b"", bytes(4), bytes(2**24), b"\0\0\0\0\x40" + bytes(8)):
        with pytest.raises(IndexError):
            Bits(data).golomb()
    assert Bits(b"\0\0\0\1" + bytes(4)).golomb() == 2**31 - 1
    assert Bits(b"\0\0\0\0\x80\0\0\0\0").golomb() == 2**32 - 1, "the longest"


LONG = 2**20
"""Bytes of which nothing may take more than a few looks: what grows with their square would not come to an end."""


def rewriting(line: bytes) -> bytes:
    able = rewriter("subrip", "mp4")
    assert able is not None
    return able[1](line)


def test_words_lose_their_look() -> None:
    assert rewriting(b"{\\an8}<i>one</i> < two <3 {three}") == b"one < two <3 {three}"
    assert rewriting(b"{\\an8 {\\b1}bold <b<i>") == b"{\\an8 bold <b"


def test_hostile_bytes_take_no_more_time_than_they_are_long() -> None:
    unit = b"\x67" + bytes(LONG) + b"\2"
    assert list(split_started(started([unit, UNITS[1]]))) == [unit, UNITS[1]]
    assert sum(1 for _ in messages(bytes(LONG) + b"\x80")) == LONG // 2
    for opening in (b"<a", b"{\\"):
        assert rewriting(opening * LONG) == opening * LONG
    with pytest.raises(IndexError):
        av1.size(b"\x04" + bytes(7) + b"\x02" + bytes(LONG))


def test_parameter_sets_that_are_repeated_are_short() -> None:
    record = b"\1\x64\0\x0a\xff\xe1\0\5" + UNITS[0] + b"\1\0\4" + UNITS[1]
    assert repeated("h264", record) == units_of("h264", record) == UNITS[:2]
    assert repeated("vp9", b"") == []
    for codec in ("h264", "h265", "av1"):
        with pytest.raises(ValueError, match="too long"):
            Passing(codec, record + bytes(2**13))
    with pytest.raises(ValueError, match="breaks off"):
        units_of("h264", b"\1\x64\0\x0a\xff\xe1\0\0\1\0\4" + UNITS[1])  # a set without a byte


@pytest.mark.parametrize(
    "times", [[0, 2048, 1024, 512, 1536], [0, 1, 2, 3], [10, 10, 10], [5, 3, 4, 9, 7, 8], [], [-9, -1, -5]]
)
def test_decode_times_rise_and_are_never_after_the_picture_is_shown(times: list[int]) -> None:
    found = decode_times(times)
    assert all(before < after for before, after in pairwise(found))
    assert all(at <= shown for at, shown in zip(found, times, strict=True))
    if len(set(times)) == len(times) and times:
        assert any(at == shown for at, shown in zip(found, times, strict=True)), "moved no more than it must be"


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.make(tmp_path_factory.mktemp("film") / "film.mp4", Recipe())


def _record(path: Path) -> bytes:
    with av.open(str(path)) as container:
        record = container.streams.video[0].codec_context.extradata
    assert record is not None
    return record


def test_ours_stand_beside_the_sources_under_a_number_of_their_own(film: Path, tmp_path: Path) -> None:
    theirs = h264(units_of("h264", _record(film)))
    assert (set(theirs.sequence), set(theirs.picture), theirs.free()) == ({0}, {0}, 1)
    both = h264(units_of("h264", _record(through(film, tmp_path, copy=True).path)))
    assert (set(both.sequence), set(both.picture)) == ({0, 1}, {0, 1})
    assert both.sequence[0] == theirs.sequence[0]


def test_the_front_names_the_highest_profile_and_level_first() -> None:
    low, high = b"\x67\x42\x00\x0a\xff", b"\x67\x64\x00\x28\xff"
    assert Sets({0: low, 1: high}, {}).written() == started([high, low])


def test_no_number_is_left_when_all_are_taken() -> None:
    assert Sets(dict.fromkeys(range(32), b""), {}).free() is None


def test_numbers_with_two_meanings_do_not_agree() -> None:
    assert not Sets({0: b"a"}, {}).agrees(Sets({0: b"b"}, {}))
    assert Sets({0: b"a"}, {0: b"c"}).agrees(Sets({1: b"b"}, {0: b"c"}))


@pytest.mark.parametrize(
    "record", [b"", b"\2" + bytes(30), b"\1\x64\0\x0a\xfe\xe1\0\4abcd\0", b"\1\x64\0\x0a\xff\xe1\0\x09ab"]
)
def test_a_broken_record_is_refused(record: bytes) -> None:
    with pytest.raises(ValueError, match=r"record|lengths"):
        units_of("h264", record)
    with pytest.raises(ValueError, match=r"record|lengths"):
        units_of("h265", record)


def test_what_cameras_write_between_pictures_is_left_out(film: Path, tmp_path: Path) -> None:
    """A message of a maker's own, with a place in it; what x264 says of itself stays, since decoders heed it."""
    through(film, tmp_path)
    group = next(iter(groups(tmp_path / "part.00000.mkv")))
    place = b"\x06\x05\x20" + bytes(range(100, 116)) + b"+48.1372+011.575" + b"\x80"
    told = av.Packet(lengthed([place]) + bytes(group.packets[0]))
    told.pts, told.is_keyframe = group.packets[0].pts, True
    kept = b"".join(
        bytes(packet) for packet in Passing("h264", _record(film)).copied(Group((told, *group.packets[1:])))
    )
    assert b"48.1372" not in kept
    assert b"x264" in kept


def test_a_group_whose_pictures_lie_before_its_key_frame_does_not_stand_alone(tmp_path: Path) -> None:
    source = made.make(tmp_path / "source.mp4", Recipe(options=(("x264-params", "open-gop=1"),)))
    through(source, tmp_path, seconds=10)
    found = [stands_alone(group, "h264") for group in groups(tmp_path / "part.00000.mkv")]
    assert found[0]
    assert len(found) > 1
    assert not any(found[1:])


def test_a_group_with_parameter_sets_of_its_own_is_not_passed_on(film: Path, tmp_path: Path) -> None:
    through(film, tmp_path)
    group = next(iter(groups(tmp_path / "part.00000.mkv")))
    passing = Passing("h264", _record(film))
    assert passing.takes(group)
    other = units_of("h264", _record(film))[0] + b"\x01"
    told = av.Packet(lengthed([other]) + bytes(group.packets[0]))
    told.pts, told.is_keyframe = group.packets[0].pts, True
    assert not passing.takes(Group((told, *group.packets[1:])))


def test_an_av1_header_that_stands_in_the_record_only_comes_before_the_group(tmp_path: Path) -> None:
    source = made.make(tmp_path / "source.mkv", Recipe("mkv", "av1", tuple(range(0, 960, 40)), made.MILLISECOND))
    through(source, tmp_path)
    group = next(iter(groups(tmp_path / "part.00000.mkv")))
    record = _record(source)
    first = bytes(group.packets[0])
    assert begins_with_header(first)
    rest = first[2 + first[1] :]  # one byte of type, one of size
    bare = av.Packet(rest)
    bare.pts, bare.is_keyframe = group.packets[0].pts, True
    assert not begins_with_header(rest)
    (found, *_) = Passing("av1", record).copied(Group((bare,)))
    assert bytes(found) == repeated("av1", record)[0] + rest


MESSAGE = b"\x01\x05" + b"\xff" * 5 + b"\x90\x04\x03\xe8\x01\x90\x80"
"""A message of no interest, and content light of 1000 and 400."""


@pytest.mark.parametrize(("codec", "header"), [("h264", b"\x06"), ("h265", b"\x4e\x01")])
def test_light_is_read_from_messages(codec: str, header: bytes) -> None:
    assert light(codec, lengthed([header + MESSAGE])) == Light(content=(1000, 400))


@pytest.mark.parametrize("message", [b"\xff", b"\x90", b"\x90\x04\x01\x80", b""])
def test_broken_messages_say_nothing(message: bytes) -> None:
    assert light("h264", lengthed([b"\x06" + message])) == Light()
    assert light("h264", b"\0\0\0\x09") == Light()
    assert light("av1", b"\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff") == Light()
