"""A film as people rip them, subtitled twice, with fonts and chapters, through split and assemble: what is kept, what
cannot be kept and is named."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import pytest
from av.stream import Disposition

from tests.functions.films import Films
from tests.unit.video.made import MILLISECOND, Recipe, make

MKV = "video/x-matroska"
HEADER = (
    b"[Script Info]\r\nScriptType: v4.00+\r\n\r\n[V4+ Styles]\r\nFormat: Name, Fontname, Fontsize\r\n"
    b"Style: Default,Some Sans,20\r\n\r\n[Events]\r\n"
    b"Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\r\n"
)
Line = tuple[int, int, str]
"""Milliseconds from and to, and a packet as text."""
SUBRIP: tuple[Line, ...] = ((0, 300, "Zero"), (400, 900, "<i>two</i>\nlines"), (1500, 2600, "over the border"))
ASS: tuple[Line, ...] = (
    (200, 900, "0,0,Default,,0,0,0,,{\\pos(10,20)}first\\Nand, second"),
    (600, 1400, "1,1,Default,,0,0,0,,meanwhile"),
    (2500, 2900, "2,0,Default,,0,0,0,,last"),
)
FONTS = {
    "a.ttf": ("font/ttf", b"\0\1\0\0one"),
    "b.otf": ("application/vnd.ms-opentype", b"OTTOtwo"),
    "c.ttf": ("application/octet-stream", b"\0\1\0\0three"),
}
"""By name."""
DIARY = ("diary.bin", "application/octet-stream", b"dear diary")
CHAPTERS = ("Begin", "Middle", "End")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    recipe = Recipe(
        "mkv",
        ticks=tuple(range(0, 3000, 40)),
        time_base=MILLISECOND,
        keys=25,
        audio=("aac",),
        options=(("bf", "0"),),
        personal=False,
    )
    return told(make(folder / "film.mkv", recipe), folder / "told.mkv")


def told(film: Path, path: Path) -> Path:
    with av.open(str(film)) as held, av.open(str(path), "w", format="matroska") as out:
        copies = [out.add_stream_from_template(stream, opaque=True) for stream in held.streams]
        copies[1].metadata["language"] = "eng"
        subrip = out.add_mux_stream("subrip", time_base=MILLISECOND)
        ass = out.add_stream("ass")
        ass.codec_context.subtitle_header, ass.time_base = HEADER, MILLISECOND
        for stream, language, disposition in ((subrip, "deu", "default"), (ass, "jpn", "forced")):
            stream.metadata.update({"language": language, "title": "Anna's"})
            stream.disposition = getattr(Disposition, disposition)
        for name, kind, data in (*((name, *font) for name, font in FONTS.items()), DIARY):
            out.add_attachment(name, kind, data)
        out.set_chapters([chapter(number, title) for number, title in enumerate(CHAPTERS)])
        packets = [(packet, copies[packet.stream.index]) for packet in held.demux() if packet.size]
        packets += [(packet(*line), stream) for stream, lines in ((subrip, SUBRIP), (ass, ASS)) for line in lines]
        for one, stream in sorted(packets, key=lambda pair: pair[0].pts * pair[0].time_base):
            one.stream = stream
            out.mux(one)
    return path


def chapter(number: int, title: str) -> dict[str, object]:
    span = {"start": 1000 * number, "end": 1000 * number + 1000, "time_base": MILLISECOND}
    return {"id": number + 1, **span, "metadata": {"title": title, "artist": "Anna"}}


def packet(start: int, end: int, text: str) -> av.Packet:
    made = av.Packet(text.encode())
    made.pts = made.dts = start
    made.duration, made.time_base = end - start, MILLISECOND
    return made


def through(target: Path, folder: Path, form: str) -> tuple[Path, tuple[str, ...]]:
    films = Films(folder / "store")
    (video,) = films.run(films.split(films.job(target, MKV, format=form)))
    films.store.download(video.video.key, out := folder / f"out.{form}")
    return out, video.warnings


def texts(path: Path, number: int) -> list[Line]:
    """What is shown when; the pauses of MP4 left out."""
    found = []
    with av.open(str(path)) as container:
        stream = container.streams.subtitles[number]
        timed = stream.codec_context.codec.canonical_name == "mov_text"
        for one in container.demux(stream):
            data = bytes(one)[2:] if timed else bytes(one)
            if data:
                start, end = (round(at * one.time_base * 1000) for at in (one.pts, one.pts + one.duration))
                found.append((start, end, data.decode()))
    return found


def beside(path: Path) -> tuple[list[tuple[str, str | None]], list[tuple[Fraction, object]]]:
    """Kinds with their languages, and chapters."""
    with av.open(str(path)) as container:
        kinds = [(stream.type, stream.language) for stream in container.streams if stream.type != "data"]
        chapters = container.chapters()
        return kinds, [(one["start"] * one["time_base"], one["metadata"]) for one in chapters]


TITLES = [(Fraction(number), {"title": title}) for number, title in enumerate(CHAPTERS)]


def test_matroska_keeps_subtitles_as_they_are_with_their_styles_and_fonts(target: Path, tmp_path: Path) -> None:
    out, warnings = through(target, tmp_path, "mkv")
    assert warnings == ("attachment_dropped",), "the diary"
    kinds, chapters = beside(out)
    subtitled = [("video", None), ("audio", "eng"), ("subtitle", "deu"), ("subtitle", "jpn")]
    assert kinds == [*subtitled, *[("attachment", None)] * len(FONTS)]
    assert chapters == TITLES
    assert (texts(out, 0), texts(out, 1)) == ([*SUBRIP], [*ASS])
    with av.open(str(out)) as container:
        assert container.streams.subtitles[1].codec_context.extradata == HEADER
        assert [stream.disposition for stream in container.streams.subtitles] == [
            *(Disposition.default, Disposition.forced)
        ]
        fonts = {stream.name: (stream.mimetype, stream.data) for stream in container.streams.attachments}
        assert fonts == FONTS
        assert "Anna" not in str([container.metadata, *(stream.metadata for stream in container.streams)])


@pytest.mark.parametrize("form", ["mp4", "mov"])
def test_mp4_shows_the_words_of_all_lines_at_their_times(target: Path, tmp_path: Path, form: str) -> None:
    out, warnings = through(target, tmp_path, form)
    assert warnings == ("attachment_dropped", "subtitles_restyled")
    kinds, chapters = beside(out)
    german, none = ("ger", None) if form == "mov" else ("deu", "und")
    assert kinds == [("video", none), ("audio", "eng"), ("subtitle", german), ("subtitle", "jpn")]
    assert chapters == TITLES
    with av.open(str(out)) as container:
        forced = Disposition.forced if form == "mp4" else Disposition(0)
        assert [stream.disposition for stream in container.streams.subtitles] == [Disposition.default, forced]
    assert texts(out, 0) == [(0, 300, "Zero"), (400, 900, "two\nlines"), (1500, 2600, "over the border")]
    assert texts(out, 1) == [
        (200, 600, "first\nand, second"),
        (600, 900, "first\nand, second\nmeanwhile"),
        (900, 1400, "meanwhile"),
        (2500, 2900, "last"),
    ]


def test_an_animation_has_no_place_for_any_of_it_and_says_so(target: Path, tmp_path: Path) -> None:
    assert through(target, tmp_path, "webp")[1] == ("audio_dropped", "subtitles_dropped", "chapters_dropped")
