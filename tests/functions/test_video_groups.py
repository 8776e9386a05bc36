"""Groups of pictures as encoders and damage leave them: open, endless, with samples of no bytes, lost as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import av
import pytest

from shared.context import Models
from shared.events.payloads import Video
from shared.rejections import MediaCorruptError
from tests.functions.film import Film
from tests.functions.films import Films
from tests.local.film import RATE, moving
from tests.unit.video.chain import ssim
from tests.unit.video.made import MILLISECOND, Recipe, decoded, make, times

FACE = Path(__file__).parents[1] / "data/face/one_face.jpg"
SECOND = 25 * 512
"""Ticks."""
OPEN_264 = (("preset", "fast"), ("x264-params", "open-gop=1:keyint=25:bframes=3:b-adapt=0:scenecut=0"))
OPEN_265 = (("x265-params", "log-level=none:open-gop=1:keyint=25:bframes=3:scenecut=0"),)


def recipe(seconds: int, **changes: object) -> Recipe:
    return Recipe(**{"ticks": tuple(range(0, seconds * SECOND, 512)), "keys": 999, "personal": False, **changes})  # type: ignore[arg-type]


def through(target: Path, folder: Path, seconds: int = 1) -> tuple[Films, Video, Path]:
    films = Films(folder / "store", segment_seconds=seconds)
    kind = "video/x-matroska" if target.suffix == ".mkv" else "video/mp4"
    (video,) = films.run(films.split(films.job(target, kind)))
    films.store.download(video.video.key, out := folder / f"out{target.suffix}")
    return films, video, out


def check_pictures(target: Path, out: Path) -> None:
    before, after = decoded(target), decoded(out)
    assert [at for at, _ in after] == [at for at, _ in before]
    assert min(ssim(new, old) for (_, new), (_, old) in zip(after, before, strict=True)) > 0.98


@pytest.mark.parametrize(("container", "codec"), [("mp4", "h264"), ("mkv", "h264"), ("mp4", "h265")])
def test_pictures_before_an_open_groups_key_frame_lean_on_the_part_before(
    container: str, codec: str, tmp_path: Path
) -> None:
    """With B-frames in pyramids: parts begin with pictures that need those of the part before."""
    base = {"ticks": tuple(range(0, 4000, 40)), "time_base": MILLISECOND} if container == "mkv" else {}
    wanted = recipe(4, container=container, codec=codec, options=OPEN_264 if codec == "h264" else OPEN_265, **base)
    target = make(tmp_path / f"open.{container}", wanted)
    with av.open(str(target)) as held:
        keys = [place for place, one in enumerate(held.demux(video=0)) if one.size and one.is_keyframe]
    assert len(keys) == 4
    films, video, out = through(target, tmp_path)
    assert (len(films.worked), video.frames, video.warnings) == (4, 100, ())
    check_pictures(target, out)


def test_ten_seconds_with_one_key_frame_are_one_part(tmp_path: Path) -> None:
    target = make(tmp_path / "long.mp4", recipe(10, options=(("x264-params", "keyint=250:scenecut=0"),)))
    films, video, out = through(target, tmp_path, seconds=2)
    assert (films.worked, video.frames, video.warnings, video.seconds) == ([0], 250, (), 10.0)
    check_pictures(target, out)


@pytest.mark.parametrize("bframes", ["0", "2"])
def test_samples_without_any_bytes_are_no_pictures(bframes: str, tmp_path: Path) -> None:
    """Recorders write them where nothing changed: the picture before is shown for longer."""
    whole = make(tmp_path / "whole.mp4", recipe(3, keys=25, options=(("bf", bframes),)))
    target = emptied(whole, tmp_path / "holes.mp4", {24, 49, 74})
    assert len(times(target)) == 72
    films, video, out = through(target, tmp_path)
    assert (len(films.worked), video.frames, video.warnings) == (3, 72, ())
    check_pictures(target, out)
    assert abs(lasting(out) - lasting(target)) < 0.05


def lasting(path: Path) -> float:
    with av.open(str(path)) as held:
        stream = held.streams.video[0]
        return float(stream.duration * stream.time_base)


def emptied(whole: Path, path: Path, which: Collection[int]) -> Path:
    """An MP4 of pictures alone in which some samples have the size 0 (ISO/IEC 14496-12, 8.7.3)."""
    data = bytearray(whole.read_bytes())
    table = [b"moov", b"trak", b"mdia", b"minf", b"stbl"]
    sizes, chunks = found(data, [*table, b"stsz"]) + 20, found(data, [*table, b"stco"]) + 12
    assert number(data, chunks) == 1
    at = number(data, chunks + 4)
    media, body = found(data, [b"mdat"]), bytearray()
    begin, end = at, media + number(data, media)
    for index in range(number(data, sizes - 4)):
        size = number(data, sizes + 4 * index)
        if index in which:
            data[sizes + 4 * index : sizes + 4 * index + 4] = bytes(4)
        else:
            body += data[at : at + size]
        at += size
    data[media : media + 4] = (begin - media + len(body)).to_bytes(4, "big")
    path.write_bytes(data[:begin] + body + data[end:])
    return path


def number(data: bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def found(data: bytearray, names: Sequence[bytes], at: int = 0, end: int | None = None) -> int:
    """Where a box begins."""
    place = next(place for name, place in boxes(data, at, len(data) if end is None else end) if name == names[0])
    return place if len(names) == 1 else found(data, names[1:], place + 8, place + number(data, place))


def boxes(data: bytearray, at: int, end: int) -> Iterator[tuple[bytes, int]]:
    while at < end:
        yield bytes(data[at + 4 : at + 8]), at
        at += number(data, at)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return moving(tmp_path_factory.mktemp("film") / "film.mp4", FACE, 3)


def holed(film: Path, path: Path, second: int) -> Path:
    """Of all pictures of one second only lengths and kinds are left (ISO/IEC 14496-15, H.264 7.3.1)."""
    data = bytearray(film.read_bytes())
    with av.open(str(film)) as held:
        for packet in held.demux(video=0):
            if not packet.size or int(packet.pts * packet.time_base) != second:
                continue
            assert packet.pos is not None
            at = packet.pos
            while at < packet.pos + packet.size:
                size = number(data, at)
                data[at + 5 : at + 4 + size] = bytes(size - 1)
                at += 4 + size
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(("second", "form"), [(0, "same"), (1, "mkv"), (2, "gif")])
def test_a_part_of_which_no_picture_can_be_decoded_is_left_out_and_named(
    tmp_path: Path, registry: Models, film: Path, astronaut: Path, second: int, form: str
) -> None:
    stages = Film(tmp_path / "objects", registry)
    target = holed(film, tmp_path / "holed.mp4", second)
    result, path = stages.run(stages.job(astronaut, target, damaged="finish", format=form))
    assert [clip.frames for clip in stages.clips if clip.index == second] == [0], "its clip holds nothing"
    assert "frames_damaged" in result.warnings
    assert 2 * RATE - 3 <= result.frames == len(decoded(path, "bgr24")) <= 2 * RATE
    if form == "same":
        assert {*times(path)} <= {at for at in times(film) if int(at) != second}
        assert times(path, "audio") == times(film, "audio")


def test_a_part_of_which_no_picture_can_be_decoded_is_refused_where_damage_is(
    tmp_path: Path, registry: Models, film: Path, astronaut: Path
) -> None:
    stages = Film(tmp_path / "objects", registry)
    with pytest.raises(MediaCorruptError) as refused:
        stages.run(stages.job(astronaut, holed(film, tmp_path / "holed.mp4", 0)))
    assert refused.value.context["field"] == "damaged"
