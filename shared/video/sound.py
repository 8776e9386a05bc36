"""Which sound a container holds as it is, and sound of another kind encoded anew.

Encoding anew decodes what came from outside: `shared.isolated` runs it where hostile bytes do no harm. Knows PyAV.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, cast

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer

from shared.rejections import MediaCorruptError
from shared.video import media

_MP4 = ("aac", "mp3", "mp2", "ac3", "eac3", "alac", "flac", "opus")
_PCM = "pcm_"
RATE = 48_000
"""Samples a second of what is encoded anew: the only rate of Opus above all, and one that AAC has too."""
BIT_RATES = {"aac": 96_000, "libopus": 80_000}
"""Bits a second and channel."""
LEAD = RATE
"""Samples by which the file of new sound is later than the video, since encoders begin before the first sample."""
_LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1", 8: "7.1"}
_GAP = RATE // 50
"""Samples that may be missing before silence is put there."""
_MOST_SILENCE = 600 * RATE


def kept(codec: str, container: str) -> bool:
    """Whether packets of `codec` go into `container` as they are."""
    match container:
        case "mkv":
            return True
        case "webm":
            return codec in ("opus", "vorbis")
        case "mov":
            return codec in ("aac", "mp3", "ac3", "eac3", "alac") or codec.startswith(_PCM)
    return codec in _MP4


def encoder(container: str) -> str:
    """Of sound that is not kept."""
    return "libopus" if container == "webm" else "aac"


def transcode(source: Path | BinaryIO, index: int, name: str, out: Path | BinaryIO) -> None:
    """The track number `index` of a video, encoded by `name` into a file of its own whose clock counts samples.

    A sample at second t of the video is tick `LEAD` + t * `RATE` of it. Where sound is missing for a while, there is
    silence. Raises MediaCorruptError for sound that cannot be decoded.
    """
    try:
        with media.sounding(source) as held, media.clip(out) as written:
            track = held.streams[index]
            assert isinstance(track, AudioStream)
            layout = _LAYOUTS.get(track.codec_context.channels, "stereo")
            new = cast(AudioStream, written.add_stream(name, rate=RATE))
            new.layout = layout
            new.bit_rate = BIT_RATES[name] * new.codec_context.channels
            new.time_base = Fraction(1, 1000)
            for frame in _even(held, track, str(new.format.name), layout):
                for packet in new.encode(frame):
                    _write(written, packet)
            for packet in new.encode(None):
                _write(written, packet)
    except av.error.FFmpegError as error:
        raise MediaCorruptError("The sound of the video cannot be decoded.") from error


def _write(written: av.container.OutputContainer, packet: av.Packet[AudioStream]) -> None:
    """Ticks of the file are samples, whatever it says of its time base."""
    assert packet.pts is not None
    packet.pts = packet.dts = round(packet.pts * packet.time_base * RATE) + LEAD
    packet.duration = round((packet.duration or 0) * packet.time_base * RATE)
    packet.time_base = Fraction(1, 1000)
    written.mux(packet)


def _even(held: InputContainer, track: AudioStream, form: str, layout: str) -> Iterator[AudioFrame]:
    """Frames one after the other without a gap, with their times in samples."""
    resampler = AudioResampler(form, layout, RATE)
    at: int | None = None
    for frame in _decoded(held, track):
        start = frame.pts * frame.time_base * RATE if frame.pts is not None and frame.time_base else None
        at = round(start or 0) if at is None else at
        missing = round(start) - at if start is not None else 0
        if _GAP < missing <= _MOST_SILENCE:
            for silent in resampler.resample(_silence(frame, missing)):
                at = _placed(silent, at)
                yield silent
        frame.pts = None
        for even in resampler.resample(frame):
            at = _placed(even, at)
            yield even
    for even in resampler.resample(None):
        at = _placed(even, at or 0)
        yield even


def _placed(frame: AudioFrame, at: int) -> int:
    frame.pts, frame.time_base = at, Fraction(1, RATE)
    return at + frame.samples


def _decoded(held: InputContainer, track: AudioStream) -> Iterator[AudioFrame]:
    for packet in held.demux(track):
        try:
            yield from packet.decode()
        except av.error.InvalidDataError:
            continue  # one broken packet is a gap


def _silence(like: AudioFrame, samples: int) -> AudioFrame:
    """In the form of `like`; `samples` at our rate."""
    count = samples * like.sample_rate // RATE
    channels = like.layout.nb_channels
    kind, rest = _TYPES[like.format.name.rstrip("p")]
    shape = (channels, count) if like.format.is_planar else (1, channels * count)
    silent = AudioFrame.from_ndarray(np.full(shape, rest, kind), like.format.name, like.layout.name)
    silent.sample_rate = like.sample_rate
    return silent


_TYPES: dict[str, tuple[type, int]] = {
    "u8": (np.uint8, 128),
    "s16": (np.int16, 0),
    "s32": (np.int32, 0),
    "flt": (np.float32, 0),
    "dbl": (np.float64, 0),
}
"""FFmpeg's sample formats: their type and the number of silence."""
