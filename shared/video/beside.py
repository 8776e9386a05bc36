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

Transcode = Callable[[Path, int, str, Path], None]
"""`sound.transcode`, or what runs it elsewhere."""
_FONTS = (
    "font/",
    "application/x-truetype-font",
    "application/x-font",
    "application/vnd.ms-opentype",
    "application/font",
)
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
            found = self._takers[packet.stream_index].take(packet)
            if found is not None:
                yield _second(found), found

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
        if name == "mov_text":
            made = self.out.add_stream(name)
            assert isinstance(made, av.subtitles.stream.SubtitleStream)
            made.codec_context.subtitle_header = texts.HEADER
            made.time_base = Fraction(1, 1000)
        else:
            made = self.out.add_mux_stream(name, time_base=Fraction(1, 1000))
        self._take(stream, made, _Taker(made, rewrite))

    def _attachment(self, stream: Stream) -> None:
        if not isinstance(stream, AttachmentStream) or self.container != "mkv":
            self._lost("attachment_dropped")
        elif (stream.mimetype or "").startswith(_FONTS):
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
    last: int | None = None

    def take(self, packet: Packet[Any]) -> Packet[Any] | None:
        if self.file is not None or (packet.pts is None and packet.dts is None):
            return None
        if self.rewrite is not None:
            data = self.rewrite(bytes(packet))
            if not data:
                return None
            made: Packet[Any] = Packet(data)
            made.pts, made.dts, made.duration = packet.pts, packet.pts, packet.duration
            made.time_base, made.is_keyframe = packet.time_base, True
            packet = made
        packet.stream = self.made
        return packet


def language(code: str, container: str) -> str:
    """The code under which a container's writer knows a language."""
    return _QUICKTIME.get(code, code) if container == "mov" else code


def _second(packet: Packet[Any]) -> Fraction:
    at = packet.pts if packet.dts is None else packet.dts
    return (at or 0) * packet.time_base
