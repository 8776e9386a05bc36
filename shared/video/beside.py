"""What lies beside the pictures, on its way into another file: sound, subtitles, fonts.

Sound is copied where the container takes it. What shows or tells of people is not taken along: cover pictures, further
video tracks, tracks of data (places, makers), names of tracks. Knows the packets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import AttachmentStream, Disposition, Stream

from shared.video import media, sound, texts
from shared.video.cues import Cue, Cues

Transcode = Callable[[Path, int, str, Path], None]
"""`sound.transcode`, or what runs it elsewhere."""
_FONTS = (
    "font/",
    "application/x-truetype-font",
    "application/x-font",
    "application/vnd.ms-opentype",
    "application/font",
)
_ANYTHING, _BEGINS = "application/octet-stream", (b"\0\1\0\0", b"OTTO", b"true", b"ttcf", b"wOFF", b"wOF2")
_CODES = "sqi:alb hye:arm eus:baq mya:bur zho:chi cze:ces nld:dut fre:fra kat:geo deu:ger ell:gre isl:ice mkd:mac "
_CODES += "msa:may fas:per rum:ron slo:slk bod:tib cym:wel swe:sve"
_QUICKTIME = dict(pair.split(":") for pair in _CODES.split())
"""The one of several codes of a language under which FFmpeg finds QuickTime's number for it."""
_COVER = Disposition.attached_pic


@dataclass
class Beside:
    """Streams of the source in the order of their numbers; `warnings` says what did not come along as it was."""

    target: Path
    out: OutputContainer
    container: str
    """As in Target."""
    transcode: Transcode
    warnings: list[str] = field(default_factory=list)
    _takers: dict[int, _Taker] = field(default_factory=dict)
    _opened: ExitStack = field(default_factory=ExitStack)

    def add(self, stream: Stream) -> None:
        """A stream of the source that is not the one with the pictures."""
        codec = stream.codec_context.codec.canonical_name if stream.codec_context else ""
        match stream.type:
            case "audio" if codec:
                self._sound(stream, codec)
            case "subtitle":
                self._text(stream, codec)
            case "attachment":
                self._attachment(stream)
            case "video":
                self._lost("cover_dropped" if stream.disposition & _COVER else "video_track_dropped")
            case "audio":
                self._lost("audio_dropped")

    def packets(self, source: InputContainer, *, damage: bool) -> Iterator[tuple[Fraction, Packet[Any]]]:
        """Second and packet, ready to be written, as the source has them."""
        taken = [stream for stream in source.streams if stream.index in self._takers]
        if not taken:
            return
        for packet in media.packets(source, *taken, damage=damage):
            taker = self._takers[packet.stream_index]
            if taker.rewrite is not None and not texts.is_plain(taker.codec, bytes(packet)):
                self._lost("subtitles_restyled")
            yield from ((_second(found), found) for found in taker.take(packet))
        yield from ((_second(found), found) for taker in self._takers.values() for found in taker.rest())

    def new_sound(self) -> list[Iterator[tuple[Fraction, Packet[Any]]]]:
        """Of each track that was encoded anew."""
        return [self._new(taker) for taker in self._takers.values() if taker.file is not None]

    def close(self) -> None:
        self._opened.close()

    def _sound(self, stream: Stream, codec: str) -> None:
        if sound.kept(codec, self.container):
            made = self.out.add_stream_from_template(stream, opaque=True)
            self._take(stream, made, _Taker(made))
            return
        path = self.out_path.with_suffix(f".{stream.index}.mka")
        self._opened.callback(path.unlink, missing_ok=True)
        self.transcode(self.target, stream.index, sound.encoder(self.container), path)
        held = self._opened.enter_context(media.reading(path))
        made = self.out.add_stream_from_template(held.streams.audio[0], opaque=True)
        self._take(stream, made, _Taker(made, file=held))
        self._lost("audio_reencoded")

    @property
    def out_path(self) -> Path:
        return Path(self.out.name)

    def _text(self, stream: Stream, codec: str) -> None:
        found = texts.rewriter(codec, self.container)
        if found is None:
            self._lost("subtitles_dropped")
            return
        name, rewrite = found
        if name == codec:
            made: Stream = self.out.add_stream_from_template(stream, opaque=True)
            self._take(stream, made, _Taker(made))
            return
        cues = None
        if name == "mov_text":
            cues = Cues()
            made = self.out.add_stream(name)
            assert isinstance(made, av.subtitles.stream.SubtitleStream)
            made.codec_context.subtitle_header = texts.HEADER
            made.time_base = Fraction(1, 1000)
        else:
            made = self.out.add_mux_stream(name, time_base=Fraction(1, 1000))
        self._take(stream, made, _Taker(made, rewrite, codec=codec, cues=cues))

    def _attachment(self, stream: Stream) -> None:
        if not isinstance(stream, AttachmentStream) or self.container != "mkv":
            self._lost("attachment_dropped")
        elif _is_font(stream):
            self.out.add_attachment(stream.name or "font", stream.mimetype or _FONTS[0], stream.data)
        else:
            self._lost("attachment_dropped")

    def _take(self, stream: Stream, made: Stream, taker: _Taker) -> None:
        made.disposition = stream.disposition
        if stream.language:
            made.metadata["language"] = language(stream.language, self.container)
        self._takers[stream.index] = taker

    def _new(self, taker: _Taker) -> Iterator[tuple[Fraction, Packet[Any]]]:
        assert taker.file is not None
        for packet in media.packets(taker.file, taker.file.streams.audio[0]):
            packet.pts = packet.dts = (packet.pts or 0) - sound.LEAD
            packet.time_base = Fraction(1, sound.RATE)
            packet.stream = taker.made
            yield _second(packet), packet

    def _lost(self, word: str) -> None:
        if word not in self.warnings:
            self.warnings.append(word)


@dataclass
class _Taker:
    made: Stream
    rewrite: Callable[[bytes], bytes] | None = None
    file: InputContainer | None = None
    """Of sound that was encoded anew: the source's packets are not taken."""
    tick: Fraction = Fraction(1, 1000)
    codec: str = ""
    """Of the source's subtitles."""
    cues: Cues | None = None
    """Where one text is shown at a time."""

    def take(self, packet: Packet[Any]) -> list[Packet[Any]]:
        if self.file is not None or (packet.pts is None and packet.dts is None):
            return []
        if self.rewrite is None:
            packet.stream = self.made
            return [packet]
        at, self.tick = packet.pts if packet.pts is not None else packet.dts or 0, packet.time_base
        cue = Cue(at, at + (packet.duration or 0), self.rewrite(bytes(packet)))
        if self.cues is not None:
            return [self._packet(text, texts.timed(text.words)) for text in self.cues.take(cue)]
        return [self._packet(cue, cue.words)] if cue.words else []

    def rest(self) -> list[Packet[Any]]:
        """After the source's last packet."""
        return [self._packet(text, texts.timed(text.words)) for text in self.cues.rest()] if self.cues else []

    def _packet(self, cue: Cue, data: bytes) -> Packet[Any]:
        made: Packet[Any] = Packet(data)
        made.pts = made.dts = cue.start
        made.duration, made.time_base, made.is_keyframe = cue.end - cue.start, self.tick, True
        made.stream = self.made
        return made


def _is_font(stream: AttachmentStream) -> bool:
    """By what it is called, and by its first bytes where it is called nothing (ISO/IEC 14496-22, 4.5)."""
    kind = stream.mimetype or _ANYTHING
    return kind.startswith(_FONTS) or (kind == _ANYTHING and stream.data.startswith(_BEGINS))


def language(code: str, container: str) -> str:
    """The code under which a container's writer knows a language."""
    return _QUICKTIME.get(code, code) if container == "mov" else code


def _second(packet: Packet[Any]) -> Fraction:
    at = packet.pts if packet.dts is None else packet.dts
    return (at or 0) * packet.time_base
