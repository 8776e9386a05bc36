"""Pictures of another size or format in mid-stream: made like the first, said so, and never passed on as they are."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from shared.isolated.frames import decoded
from shared.video.cut import cut
from shared.video.groups import groups, stands_alone
from tests.unit.video import changing, made
from tests.unit.video.boxed import changed, listed, written
from tests.unit.video.chain import facts, ssim
from tests.unit.video.made import Recipe, picture

LARGE, SMALL = (96, 64), (64, 48)
FILES = {"h264": "mkv", "h265": "mkv", "vp9": "webm", "av1": "webm"}


def run(size: tuple[int, int]) -> list[np.ndarray]:
    return [picture(number, size) for number in range(12)]


def film(folder: Path, codec: str, *sizes: tuple[int, int]) -> Path:
    return changing.made(folder / f"source.{FILES[codec]}", codec, [run(size) for size in sizes])


@pytest.mark.parametrize("codec", FILES)
def test_a_change_of_size_is_scaled_and_said(codec: str, tmp_path: Path) -> None:
    source = film(tmp_path, codec, LARGE, SMALL, LARGE)
    found = facts(source)
    assert (found.width, found.height, found.frames, found.damage) == (*LARGE, 36, ())
    with decoded(source, found, held=40) as frames:
        shown = list(frames)
        assert {frame.planes[0].shape for frame in shown} == {(64, 96)}
        assert (frames.changes, frames.damage) == (("size_changes",), ())
        assert ssim(shown[0].planes[0], shown[24].planes[0]) > 0.95, "what has the first one's size is left as it is"


@pytest.mark.parametrize("codec", FILES)
def test_a_part_that_is_wholly_of_another_size_says_so(codec: str, tmp_path: Path) -> None:
    source = film(tmp_path, codec, LARGE, SMALL, SMALL)
    found = facts(source)
    said = []
    for piece in cut(source, found, tmp_path, 0.4, fewest=4):
        with decoded(piece.path, found, start=piece.start) as frames:
            count = sum(piece.start <= frame.pts < piece.end for frame in frames)
            assert count == piece.frames
            said.append((piece.end > 12 * changing.STEP, frames.changes))
    assert len(said) > 2
    assert all(changes == (("size_changes",) if late else ()) for late, changes in said)


@pytest.mark.parametrize("codec", FILES)
def test_only_groups_of_the_size_that_the_clip_says_are_passed_on(codec: str, tmp_path: Path) -> None:
    source = film(tmp_path, codec, LARGE, SMALL)
    (piece,) = cut(source, facts(source), tmp_path, 60)
    assert [stands_alone(group, codec) for group in groups(piece.path)] == [True, True, False, False]


def test_another_pixel_format_is_converted_and_said(tmp_path: Path) -> None:
    source = changing.made(tmp_path / "source.mkv", "h264", [run(LARGE), run(LARGE)], ("yuv420p", "yuv444p"))
    found = facts(source)
    with decoded(source, found) as frames:
        assert sum(1 for _ in frames) == 24
    assert (frames.changes, frames.damage) == (("format_changes",), ())


def test_what_does_not_change_says_nothing(tmp_path: Path) -> None:
    source = film(tmp_path, "h264", LARGE, LARGE)
    with decoded(source, facts(source)) as frames:
        assert sum(1 for _ in frames) == 24
    assert frames.changes == frames.damage == ()


STBL = (b"moov", b"trak", b"mdia", b"minf", b"stbl")


def table(data: bytes, name: bytes) -> bytes:
    for step in (*STBL, name):
        data = dict(listed(data))[step]
    return data


def described_twice(folder: Path) -> Path:
    """An MP4 file of 24 large pictures and 24 small ones, each in a chunk and with a description of its own."""
    long = made.make(folder / "long.mp4", Recipe(size=LARGE, ticks=tuple(range(0, 48 * 512, 512)))).read_bytes()
    late = made.make(folder / "late.mp4", Recipe(size=SMALL)).read_bytes()
    chunks, sizes = [], []
    for data in (long, late):
        sizes.append(struct.unpack(">24I", table(data, b"stsz")[12 : 12 + 96]))
        (place,) = struct.unpack(">I", table(data, b"stco")[8:12])
        chunks.append(data[place : place + sum(sizes[-1])])
    front = written([box for box in listed(long) if box[0] not in (b"mdat", b"moov")])
    first = len(front) + 8
    tables = {
        b"stsz": struct.pack(">51I", 0, 0, 48, *sizes[0], *sizes[1]),
        b"stco": struct.pack(">4I", 0, 2, first, first + len(chunks[0])),
        b"stsc": struct.pack(">8I", 0, 2, 1, 24, 1, 2, 24, 2),
        b"stsd": struct.pack(">2I", 0, 2) + table(long, b"stsd")[8:] + table(late, b"stsd")[8:],
    }
    moov = written([box for box in listed(long) if box[0] == b"moov"])
    for name, body in tables.items():
        moov = changed(moov, (*STBL, name), lambda _, body=body: body)  # type: ignore[misc]
    path = folder / "twice.mp4"
    path.write_bytes(front + written([(b"mdat", b"".join(chunks))]) + moov)
    return path


def test_a_second_description_of_the_pictures_goes_along_into_every_part(tmp_path: Path) -> None:
    source = described_twice(tmp_path)
    found = facts(source)
    assert (found.frames, found.damage) == (48, ())
    said = []
    for piece in cut(source, found, tmp_path, 0.6, fewest=4):
        with decoded(piece.path, found, start=piece.start) as frames:
            assert sum(piece.start <= frame.pts < piece.end for frame in frames) == piece.frames
        said.append((frames.changes, frames.damage))
    assert said == [((), ()), (("size_changes",), ()), (("size_changes",), ())]
