"""What lies beside the pictures comes along, and nothing that tells of people."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest

from shared.isolated.sound import transcode
from shared.rejections import MediaCorruptError
from shared.video import sound
from shared.video.beside import language
from shared.video.choosing import choose
from shared.video.cut import cut
from shared.video.encode import ClipWriter
from shared.video.encoders import Means
from shared.video.faults import EncodeFailedError
from shared.video.join import join
from shared.video.plan import Part, Plan
from shared.video.times import decode_times
from tests.unit.video import made
from tests.unit.video.chain import facts, frames, ssim, through
from tests.unit.video.made import Recipe

CASES = Path("tests/data/video")


def _streams(path: Path) -> list[tuple[str, str | None]]:
    with av.open(str(path)) as container:
        return [(stream.type, stream.language) for stream in container.streams]


@pytest.mark.parametrize(
    ("name", "streams"),
    [
        ("no_audio.mp4", [("video", "und")]),
        ("two_audio_eng_deu.mp4", [("video", "und"), ("audio", "eng"), ("audio", "deu")]),
        ("audio_stream_first.mp4", [("audio", "und"), ("video", "und")]),
        ("audio_starts_400ms_late.mp4", [("video", "und"), ("audio", "und")]),
        ("cover_art.mp4", [("video", "und"), ("audio", "und")]),
    ],
)
def test_vid_03_every_track_of_sound_comes_along(name: str, streams: list[tuple[str, str]], tmp_path: Path) -> None:
    done = through(CASES / name, tmp_path)
    assert _streams(done.path) == streams
    assert len(made.times(done.path)) == 50
    assert done.warnings == (("cover_dropped",) if name == "cover_art.mp4" else ())
    for number in range(sum(kind == "audio" for kind, _ in streams)):
        assert made.packets(done.path, "audio", number) == made.packets(CASES / name, "audio", number)
        assert made.times(done.path, "audio", number)[-1] == made.times(CASES / name, "audio", number)[-1]


def test_vid_03_sound_that_starts_late_still_does(tmp_path: Path) -> None:
    done = through(CASES / "audio_starts_400ms_late.mp4", tmp_path)
    late = made.times(done.path, "audio")[0] - made.times(done.path)[0]
    assert float(late) == pytest.approx(0.38, abs=0.03)


@pytest.mark.parametrize(
    ("name", "count"), [("moov_at_end_large.mp4", 25), ("moov_at_end.mp4", 50), ("faststart.mp4", 50)]
)
def test_vid_07_the_index_comes_first(name: str, count: int, tmp_path: Path) -> None:
    done = through(CASES / name, tmp_path)
    held = done.path.read_bytes()
    assert 0 < held.index(b"moov") < held.index(b"mdat")
    assert len(made.decoded(done.path)) == count


@pytest.mark.parametrize("encode", [sound.transcode, transcode], ids=["here", "isolated"])
def test_sound_that_a_container_does_not_take_is_encoded_anew_and_named(
    encode: Callable[[Path, int, str, Path], None], tmp_path: Path
) -> None:
    source = CASES / "two_audio_eng_deu.mp4"
    done = _joined(source, tmp_path, "webm", encode)
    assert done == ("audio_reencoded",)
    out = tmp_path / "out.webm"
    assert _streams(out) == [("video", None), ("audio", "eng"), ("audio", "deu")]
    for number in range(2):
        before, after = _sound(source, number), _sound(out, number)
        assert abs(before[0] - after[0]) < 0.001
        assert abs(before[1] - after[1]) < 0.025


def _joined(
    source: Path, folder: Path, container: str, encode: Callable[[Path, int, str, Path], None]
) -> tuple[str, ...]:
    found = facts(source)
    choice = choose(found, container)
    (piece,) = cut(source, found, folder, 100)
    clip = folder / "clip.mkv"
    with ClipWriter(clip, piece.path, found, choice, quality=50) as writer:
        for frame in frames(piece.path):
            writer.encode(frame)
    plan = Plan(found, (Part(made.NO_REF, piece.start, piece.end, piece.frames, piece.cut),), 1)
    return join(source, [clip], plan, folder / f"out.{container}", choice, transcode=encode)


def _sound(path: Path, number: int) -> tuple[float, float]:
    """Seconds at which the first sample is heard and the last one ends."""
    with av.open(str(path)) as container:
        heard = list(container.decode(container.streams.audio[number]))
        return heard[0].time, heard[-1].time + heard[-1].samples / heard[-1].sample_rate


def test_silence_stands_where_sound_is_missing(tmp_path: Path) -> None:
    source = made.make(
        tmp_path / "source.mkv",
        Recipe("mkv", audio=("flac",), ticks=tuple(range(0, 2000, 40)), time_base=Fraction(1, 1000)),
    )
    holed = tmp_path / "holed.mkv"
    with av.open(str(source)) as held, av.open(str(holed), "w") as out:
        track = held.streams.audio[0]
        copy = out.add_stream_from_template(track)
        for packet in held.demux(track):
            if packet.size and not 0.5 < packet.pts * packet.time_base < 1.2:
                packet.stream = copy
                out.mux(packet)
    sound.transcode(holed, 0, "aac", tmp_path / "new.mka")
    with av.open(str(tmp_path / "new.mka")) as container:
        ticks = [packet.pts - sound.LEAD for packet in container.demux(audio=0) if packet.size]
    assert ticks[-1] / sound.RATE == pytest.approx(2.0, abs=0.05)
    assert max(b - a for a, b in pairwise(ticks)) <= 1100


def test_sound_that_cannot_be_decoded_is_the_sources_fault(tmp_path: Path) -> None:
    (tmp_path / "noise.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(1000))
    with pytest.raises(MediaCorruptError):
        transcode(tmp_path / "noise.mp4", 0, "aac", tmp_path / "out.mka")


def test_in_matroska_all_is_later_where_sound_begins_before_zero(tmp_path: Path) -> None:
    source = CASES / "two_audio_eng_deu.mp4"
    done = through(source, tmp_path, container="mkv")
    shifts = {
        round(float(after - before), 3) for before, after in zip(made.times(source), made.times(done.path), strict=True)
    }
    assert shifts == {0.023}
    assert made.packets(done.path, "audio") == made.packets(source, "audio")


TEXTS = ["Hello", "two\nlines", "bye"]


def _told(source: Path, path: Path, codec: str) -> Path:
    """The video `source` with subtitles and chapters."""
    name = made.FORMATS[path.suffix[1:]]
    with av.open(str(source)) as held, av.open(str(path), "w", format=name) as out:
        video = out.add_stream_from_template(held.streams.video[0], opaque=True)
        if codec == "mov_text":
            texts = out.add_stream(codec)
            texts.codec_context.subtitle_header = b"[Script Info]\r\nScriptType: v4.00+\r\n\r\n[Events]\r\n"
            texts.time_base = Fraction(1, 1000)
        else:
            texts = out.add_mux_stream(codec, time_base=Fraction(1, 1000))
        texts.metadata["language"] = "fra"
        chapters = [(0, 400, "Anna's part"), (400, 960, "Rest")]
        out.set_chapters([_chapter(number, *chapter) for number, chapter in enumerate(chapters)])
        waiting = [(300 * number, _line(codec, text), texts) for number, text in enumerate(TEXTS)]
        pictures = _pictures(held, video)
        for at, packet, stream in heapq.merge(waiting, pictures, key=lambda entry: entry[0]):
            if stream is texts:
                packet.pts = packet.dts = at
                packet.duration, packet.time_base = 200, Fraction(1, 1000)
            packet.stream = stream
            out.mux(packet)
    return path


def _pictures(held: av.container.InputContainer, stream: av.VideoStream) -> list[tuple[int, av.Packet, av.VideoStream]]:
    packets = [packet for packet in held.demux(video=0) if packet.size]
    for packet, at in zip(packets, decode_times([packet.pts for packet in packets]), strict=True):
        packet.dts = at
    return [(round(packet.dts * packet.time_base * 1000), packet, stream) for packet in packets]


def _chapter(number: int, start: int, end: int, title: str) -> dict[str, object]:
    base = Fraction(1, 1000)
    return {
        "id": number + 1,
        "start": start,
        "end": end,
        "time_base": base,
        "metadata": {"title": title, "artist": "Anna"},
    }


def _line(codec: str, text: str) -> av.Packet:
    data = text.encode()
    return av.Packet(len(data).to_bytes(2, "big") + data if codec == "mov_text" else data)


def _texts(path: Path) -> list[tuple[int, str]]:
    found = []
    with av.open(str(path)) as container:
        stream = container.streams.subtitles[0]
        plain = stream.codec_context.codec.canonical_name == "mov_text"
        for packet in container.demux(stream):
            data = bytes(packet)[2:] if plain else bytes(packet)
            if data:
                found.append((round(packet.pts * packet.time_base * 1000), data.decode()))
    return found


@pytest.mark.parametrize(
    ("source", "codec", "container"),
    [
        ("mp4", "mov_text", "same"),
        ("mp4", "mov_text", "mkv"),
        ("mp4", "mov_text", "webm"),
        ("mkv", "subrip", "same"),
        ("mkv", "subrip", "mp4"),
        ("mkv", "subrip", "mov"),
        ("mkv", "webvtt", "same"),
    ],
)
def test_subtitles_and_chapters_come_along(source: str, codec: str, container: str, tmp_path: Path) -> None:
    film = made.make(tmp_path / f"film.{source}", Recipe(source))
    done = through(_told(film, tmp_path / f"told.{source}", codec), tmp_path, container=container)
    assert done.warnings == ()
    assert _texts(done.path) == [(300 * number, text) for number, text in enumerate(TEXTS)]
    with av.open(str(done.path)) as held:
        assert held.streams.subtitles[0].language == "fra"
        chapters = held.chapters()
    seconds = [float(chapter["start"] * chapter["time_base"]) for chapter in chapters]
    assert seconds == pytest.approx([0, 0.4], abs=0.001)
    assert [chapter["metadata"] for chapter in chapters] == [{"title": "Anna's part"}, {"title": "Rest"}]


def test_fonts_come_along_in_matroska_and_no_other_file(tmp_path: Path) -> None:
    film = made.make(tmp_path / "film.mkv", Recipe("mkv"))
    source = tmp_path / "source.mkv"
    with av.open(str(film)) as held, av.open(str(source), "w") as out:
        video = out.add_stream_from_template(held.streams.video[0], opaque=True)
        out.add_attachment("a.ttf", "application/x-truetype-font", b"font")
        out.add_attachment("anna.txt", "text/plain", b"diary")
        for packet in held.demux(video=0):
            if packet.size:
                packet.stream = video
                out.mux(packet)
    done = through(source, tmp_path)
    assert done.warnings == ("attachment_dropped",)
    with av.open(str(done.path)) as held:
        assert [stream.data for stream in held.streams if stream.type == "attachment"] == [b"font"]


def test_a_clip_that_lacks_a_picture_is_no_success(tmp_path: Path) -> None:
    source = made.make(tmp_path / "source.mp4", Recipe())
    done = through(source, tmp_path, seconds=0.3)
    short = tmp_path / "clip.1.mkv"
    pictures = list(frames(short))[:-1]
    with ClipWriter(short, tmp_path / "part.00001.mkv", done.plan.facts, done.choice, quality=92) as writer:
        for frame in pictures:
            writer.encode(frame)
    clips = [tmp_path / f"clip.{number}.mkv" for number in range(len(done.plan.parts))]
    with pytest.raises(EncodeFailedError):
        join(source, clips, done.plan, tmp_path / "again.mp4", done.choice, transcode=sound.transcode)


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_clips_of_two_encoders_stand_in_one_video(codec: str, tmp_path: Path) -> None:
    """As when one process has a GPU and the other has none: their parameter sets differ and share their numbers."""
    source = made.make(tmp_path / "source.mp4", Recipe(codec="h264"))
    done = through(source, tmp_path, container="mp4", codec=codec, seconds=0.3)
    other = tmp_path / "clip.1.mkv"
    pictures = list(frames(other))
    with ClipWriter(
        other, tmp_path / "part.00001.mkv", done.plan.facts, done.choice, quality=92, means=Means(speed="fine")
    ) as writer:
        for frame in pictures:
            writer.encode(frame)
    clips = [tmp_path / f"clip.{number}.mkv" for number in range(len(done.plan.parts))]
    join(source, clips, done.plan, tmp_path / "again.mp4", done.choice, transcode=sound.transcode)
    before, after = made.decoded(source), made.decoded(tmp_path / "again.mp4")
    assert [at for at, _ in after] == [at for at, _ in before]
    assert min(ssim(new, old) for (_, new), (_, old) in zip(after, before, strict=True)) > 0.97


def test_two_codes_of_one_language() -> None:
    assert [language("deu", container) for container in ("mov", "mp4")] == ["ger", "deu"]
    assert [language(code, "mov") for code in ("fra", "fre", "eng")] == ["fra", "fra", "eng"]
