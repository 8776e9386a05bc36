"""Videos whose pictures change in the middle: packets of two encoders in one stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from shared.video.parameters import units_of
from shared.video.units import started

MILLISECOND = Fraction(1, 1000)
STEP = 40
ENCODERS = {
    "h264": ("libx264", {"preset": "veryfast", "crf": "16", "bf": "0"}),
    "h265": ("libx265", {"preset": "ultrafast", "crf": "16", "x265-params": "log-level=none:bframes=0:open-gop=0"}),
    "vp9": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8", "crf": "16", "b": "0"}),
    "av1": ("libsvtav1", {"preset": "12", "crf": "20", "svtav1-params": "pred-struct=1:lp=1"}),
}


def made(
    path: Path, codec: str, runs: Sequence[Sequence[NDArray[np.uint8]]], formats: Sequence[str] = (), keys: int = 6
) -> Path:
    """Each run of pictures (BGR) by an encoder of its own, 25 frames a second; what each says stands in the stream."""
    pairs = zip(runs, formats or ("yuv420p",) * len(runs), strict=True)
    encoded = [[*_encoded(codec, run, pixels, keys)] for run, pixels in pairs]
    with av.open(str(path), "w", format="webm" if path.suffix == ".webm" else "matroska") as out:
        stream = out.add_stream_from_template(encoded[0][0][0], opaque=True)
        for number, (_, data, key) in enumerate(one for run in encoded for one in run):
            packet = av.Packet(data)
            packet.pts = packet.dts = number * STEP
            packet.is_keyframe, packet.time_base, packet.stream = key, MILLISECOND, stream
            out.mux(packet)
    return path


def _encoded(
    codec: str, run: Sequence[NDArray[np.uint8]], pixels: str, keys: int
) -> Iterator[tuple[av.VideoStream, bytes, bool]]:
    """Packets in the order of showing, with start codes; the stream that they are of."""
    encoder, options = ENCODERS[codec]
    with av.open(BytesIO(), "w", format="matroska") as out:
        stream = out.add_stream(encoder, rate=25)
        stream.height, stream.width = run[0].shape[:2]
        stream.pix_fmt, stream.codec_context.options = pixels, options
        stream.codec_context.gop_size = keys
        for number, picture in enumerate([*run, None]):
            frame = None
            if picture is not None:
                frame = av.VideoFrame.from_ndarray(picture, format="bgr24").reformat(format=pixels)
                frame.pts = number
                frame.pict_type = av.video.frame.PictureType.I if number % keys == 0 else frame.pict_type
            for packet in stream.encode(frame):
                out.mux(packet)
                yield stream, _sets(stream, codec, packet) + bytes(packet), packet.is_keyframe


def _sets(stream: av.VideoStream, codec: str, packet: av.Packet) -> bytes:
    if codec not in ("h264", "h265") or not packet.is_keyframe:
        return b""
    return started(units_of(codec, bytes(stream.codec_context.extradata or b"")))
