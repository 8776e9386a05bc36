"""Small clips of every kind, encoded on the spot: what is in them is known to the tick and to the byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from shared.events.payloads import ObjectRef

ENCODERS = {"h264": "libx264", "h265": "libx265", "av1": "libsvtav1", "vp9": "libvpx-vp9"}
OPTIONS = {
    "h264": {"preset": "ultrafast", "crf": "18", "bf": "2", "b-adapt": "0"},
    "h265": {"preset": "ultrafast", "crf": "20", "x265-params": "log-level=none:open-gop=0:bframes=2"},
    "av1": {"preset": "12", "crf": "25"},
    "vp9": {"deadline": "realtime", "cpu-used": "8", "crf": "20", "b": "0"},
}
MILLISECOND = Fraction(1, 1000)
NO_REF = ObjectRef("", "", 0, "")
"""Where a clip lies in the store is of no meaning to the library."""
FORMATS = {"mp4": "mp4", "mov": "mov", "mkv": "matroska", "webm": "webm"}


@dataclass(frozen=True)
class Recipe:
    container: str = "mp4"
    codec: str = "h264"
    ticks: tuple[int, ...] = tuple(range(0, 24 * 512, 512))
    """When each frame is shown, in the time base; the last lasts as long as the one before."""
    time_base: Fraction = Fraction(1, 12800)
    size: tuple[int, int] = (96, 64)
    pixels: str = "yuv420p"
    rotation: int = 0
    keys: int = 8
    """Frames from key frame to key frame."""
    scenes: tuple[int, ...] = ()
    """Numbers of further key frames."""
    audio: tuple[str, ...] = ()
    """Encoders, one for each track."""
    languages: tuple[str, ...] = ()
    audio_first: bool = False
    audio_start: float = 0.0
    """Seconds."""
    chapters: int = 0
    options: tuple[tuple[str, str], ...] = ()
    colours: tuple[int, int, int, int] = (1, 1, 1, 1)
    """Range, primaries, transfer, matrix, as FFmpeg numbers them."""
    aspect: Fraction = Fraction(1)
    """Of a pixel."""
    personal: bool = True
    """Whether names and places are written into it."""


def picture(number: int, size: tuple[int, int]) -> NDArray[np.uint8]:
    """RGB [h, w, 3]: texture that moves three pixels a frame, so that no two neighbours are alike."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    shade = 120 + 50 * np.sin((x + 3 * number) / 5) + 45 * np.cos((y - 2 * number) / 7)
    tint = np.stack([shade, np.roll(shade, 9, 1), 255 - shade], -1)
    return np.clip(tint, 0, 255).astype(np.uint8)


def make(path: Path, recipe: Recipe) -> Path:
    with av.open(str(path), "w", format=FORMATS[recipe.container], container_options=_options(recipe)) as out:
        tracks = [] if not recipe.audio_first else _audio(out, recipe)
        stream = out.add_stream(ENCODERS[recipe.codec], rate=Fraction(25))
        stream.width, stream.height, stream.pix_fmt = *recipe.size, recipe.pixels
        context = stream.codec_context
        context.time_base, context.framerate, context.gop_size = recipe.time_base, Fraction(25), recipe.keys
        context.color_range, context.color_primaries, context.color_trc, context.colorspace = recipe.colours
        context.sample_aspect_ratio = recipe.aspect
        stream.time_base = recipe.time_base
        context.options = {**OPTIONS[recipe.codec], **dict(recipe.options)}
        if recipe.rotation:
            stream.set_display_rotation(recipe.rotation)
        tracks = tracks or _audio(out, recipe)
        _tell(out, recipe)
        frames = _frames(recipe)
        packets = [packet for frame in frames for packet in stream.encode(frame)] + stream.encode()
        sounds = [packet for track, codec in zip(tracks, recipe.audio, strict=True) for packet in _sound(track, recipe)]
        for packet in sorted([*packets, *sounds], key=lambda packet: packet.dts * packet.time_base):
            out.mux(packet)
    return path


def _options(recipe: Recipe) -> dict[str, str]:
    if recipe.container in ("mp4", "mov"):
        return {"video_track_timescale": str(recipe.time_base.denominator)}
    return {}


def _tell(out: av.container.OutputContainer, recipe: Recipe) -> None:
    if recipe.personal:
        out.metadata.update({"title": "Anna's birthday", "artist": "Anna", "comment": "at home"})
        out.metadata.update({"location": "+48.1372+011.5755/", "creation_time": "2024-05-01T10:00:00Z"})
        out.metadata.update({"make": "Maker", "model": "Model", "com.apple.quicktime.make": "Maker"})
    if recipe.chapters:
        base = Fraction(1, 1000)
        out.set_chapters(
            [
                {
                    "id": n + 1,
                    "start": 200 * n,
                    "end": 200 * n + 200,
                    "time_base": base,
                    "metadata": {"title": f"Part {n}"},
                }
                for n in range(recipe.chapters)
            ]
        )


def _frames(recipe: Recipe) -> Iterator[av.VideoFrame]:
    for number, at in enumerate(recipe.ticks):
        frame = av.VideoFrame.from_ndarray(picture(number, recipe.size), format="rgb24").reformat(format=recipe.pixels)
        frame.pts, frame.time_base = at, recipe.time_base
        key = number % recipe.keys == 0 or number in recipe.scenes
        frame.pict_type = av.video.frame.PictureType.I if key else av.video.frame.PictureType.NONE
        yield frame


def _audio(out: av.container.OutputContainer, recipe: Recipe) -> list[av.AudioStream]:
    tracks = []
    for number, codec in enumerate(recipe.audio):
        track = out.add_stream(codec, rate=48000)
        track.layout = "mono"
        if number < len(recipe.languages):
            track.metadata["language"] = recipe.languages[number]
        tracks.append(track)
    return tracks


def _sound(track: av.AudioStream, recipe: Recipe) -> list[av.Packet]:
    """A tone as long as the pictures."""
    seconds = float((recipe.ticks[-1] - recipe.ticks[0]) * recipe.time_base) + 0.04
    tone = np.sin(np.arange(int(seconds * 48000)) * 0.05 * (1 + track.index))[None] * 12000
    frame = av.AudioFrame.from_ndarray(tone.astype(np.int16), format="s16", layout="mono")
    start = float(recipe.ticks[0] * recipe.time_base) + recipe.audio_start
    frame.sample_rate, frame.pts, frame.time_base = 48000, int(start * 48000), Fraction(1, 48000)
    return [packet for part in (frame, None) for packet in track.encode(part)]


def times(path: Path, kind: str = "video", number: int = 0) -> list[Fraction]:
    """When each packet is shown, in seconds, in their order."""
    with av.open(str(path)) as container:
        stream = getattr(container.streams, kind)[number]
        return sorted(packet.pts * packet.time_base for packet in container.demux(stream) if packet.size)


def packets(path: Path, kind: str, number: int = 0) -> list[bytes]:
    with av.open(str(path)) as container:
        stream = getattr(container.streams, kind)[number]
        return [bytes(packet) for packet in container.demux(stream) if packet.size]


def decoded(path: Path, pixels: str = "") -> list[tuple[Fraction, NDArray[np.uint8]]]:
    """Times in seconds and the first plane, or the picture in the format `pixels`."""
    with av.open(str(path)) as container:
        return [(frame.pts * frame.time_base, _array(frame, pixels)) for frame in container.decode(video=0)]


def _array(frame: av.VideoFrame, pixels: str) -> NDArray[np.uint8]:
    if pixels:
        return frame.to_ndarray(format=pixels)
    plane = frame.planes[0]
    deep = "10" in frame.format.name
    samples = np.frombuffer(plane, np.uint16 if deep else np.uint8).reshape(plane.height, -1)[:, : frame.width]
    return (samples >> 2).astype(np.uint8) if deep else samples.copy()


def ticks(rates: Sequence[int]) -> tuple[int, ...]:
    """Steps from frame to frame as times from 0."""
    return (0, *np.cumsum(rates).tolist())
