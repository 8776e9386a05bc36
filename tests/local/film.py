"""A clip with a face that moves by a known path, and what a finished one holds."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

SIZE = 192
RATE = 25


def moving(path: Path, still: Path, seconds: int) -> Path:
    """A window that wanders over a still picture, a key frame each second, with a tone beside it."""
    image = cv2.imread(str(still))
    assert image is not None
    height, width = image.shape[:2]
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = SIZE, SIZE, "yuv420p"
        stream.codec_context.gop_size = RATE
        stream.codec_context.options = {"preset": "veryfast", "x264-params": f"keyint={RATE}:scenecut=0"}
        sound = out.add_stream("aac", rate=48000)
        sound.layout = "mono"
        for number in range(seconds * RATE):
            x = int((width - SIZE) / 2 * (1 + np.sin(number / 20)))
            y = int((height - SIZE) / 8 * (1 + np.cos(number / 17)))
            part = np.ascontiguousarray(image[y : y + SIZE, x : x + SIZE])
            frame = av.VideoFrame.from_ndarray(part, format="bgr24").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
        tone = (np.sin(np.arange(seconds * 48000) * 0.05) * 9000).astype(np.int16)[None]
        heard = av.AudioFrame.from_ndarray(tone, format="s16", layout="mono")
        heard.sample_rate, heard.pts = 48000, 0
        out.mux(sound.encode(heard))
        out.mux(sound.encode())
    return path


def pictures(path: Path) -> list[tuple[Fraction, NDArray[np.uint8]]]:
    """Times in seconds, and BGR."""
    with av.open(str(path)) as container:
        return [(frame.pts * frame.time_base, frame.to_ndarray(format="bgr24")) for frame in container.decode(video=0)]


def sound(path: Path) -> list[bytes]:
    with av.open(str(path)) as container:
        return [bytes(packet) for packet in container.demux(container.streams.audio[0]) if packet.size]
