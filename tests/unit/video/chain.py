"""A video through the whole library with nothing changed in it: divided, each clip written anew, joined."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from shared.video import sound
from shared.video.animation import animate
from shared.video.choosing import ANIMATIONS, Target, choose
from shared.video.cut import Piece, cut
from shared.video.encode import ClipWriter
from shared.video.facts import Facts
from shared.video.formats import layout, planar
from shared.video.frame import Frame
from shared.video.groups import groups
from shared.video.join import join
from shared.video.plan import Part, Plan
from shared.video.probe import Bounds, probe
from shared.video.source import Source
from tests.unit.video.made import NO_REF


@dataclass(frozen=True)
class Finished:
    path: Path
    plan: Plan
    choice: Target
    warnings: tuple[str, ...]
    passed_on: frozenset[int]
    """Ticks, as the source counts them, of frames that were not encoded anew."""


def facts(path: Path) -> Facts:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return probe(Source(descriptor), Bounds(10**8, 10**5, 10**6))
    finally:
        os.close(descriptor)


def frames(path: Path, *, alpha: bool = False) -> Iterator[Frame]:
    """Decoded here, in the test's own process: these clips are no strangers'."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        context = av.CodecContext.create("libvpx-vp9", "r") if alpha else stream.codec_context
        for packet in container.demux(stream):
            for frame in context.decode(packet if packet.size else None):
                name = planar(frame.format.name)
                flat = frame if frame.format.name.replace("yuvj", "yuv") == name else frame.reformat(format=name)
                yield Frame(planes(flat), name, frame.pts, frame.duration or 0, frame.key_frame)


def planes(frame: av.VideoFrame) -> tuple[NDArray[np.uint8], ...]:
    form = layout(planar(frame.format.name))
    kind = np.dtype(np.uint8 if form.depth == 8 else np.uint16)
    shapes = form.shapes(frame.width, frame.height)
    return tuple(
        np.frombuffer(plane, kind).reshape(-1, plane.line_size // kind.itemsize)[:rows, :columns]
        for plane, (rows, columns) in zip(frame.planes, shapes, strict=True)
    )


def through(
    path: Path, folder: Path, *, container: str = "same", codec: str = "same", seconds: float = 0.3, copy: bool = False
) -> Finished:
    """`copy`: every second group is passed on where it can be."""
    found = facts(path)
    choice = choose(found, container, codec)
    parts, clips, passed = [], [], set()
    for number, piece in enumerate(cut(path, found, folder, seconds, fewest=4)):
        clips.append(folder / f"clip.{number}.mkv")
        passed |= written(piece, clips[-1], found, choice, copy=copy)
        parts.append(Part(NO_REF, piece.start, piece.end, piece.frames, piece.cut))
    plan = Plan(found, tuple(parts), window=2)
    out = folder / f"out.{choice.container}"
    if choice.container in ANIMATIONS:
        warnings = animate(clips, plan, out, choice, quality=92)
    else:
        warnings = join(path, clips, plan, out, choice, transcode=sound.transcode)
    shift = parts[0].start - found.start
    return Finished(out, plan, choice, warnings, frozenset(at - shift for at in passed))


def written(piece: Piece, out: Path, found: Facts, choice: Target, *, copy: bool) -> set[int]:
    """Ticks of the frames that were passed on."""
    hidden = found.alpha and found.codec == "vp9"
    own = {frame.pts: frame for frame in frames(piece.path, alpha=hidden) if piece.start <= frame.pts < piece.end}
    passed: set[int] = set()
    with ClipWriter(out, piece.path, found, choice, quality=92) as writer:
        if found.container in ANIMATIONS:
            for frame in own.values():
                writer.encode(frame)
            return passed
        for number, group in enumerate(groups(piece.path)):
            mine = [at for at in group.times if at in own]
            if copy and number % 2 and len(mine) == len(group.times) and writer.takes(group):
                writer.copy(group)
                passed.update(mine)
            else:
                for at in mine:
                    writer.encode(own[at])
    return passed


def ssim(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Structural similarity over blocks of 8 x 8 pixels (Wang et al. 2004, with their constants)."""
    a, b = (_blocks(image.astype(np.float64)) for image in (one, other))
    mean_a, mean_b = a.mean(1), b.mean(1)
    both = ((a - mean_a[:, None]) * (b - mean_b[:, None])).mean(1)
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    light = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
    return float((light * (2 * both + c2) / (a.var(1) + b.var(1) + c2)).mean())


def _blocks(image: NDArray[np.float64]) -> NDArray[np.float64]:
    rows, columns = image.shape[0] // 8, image.shape[1] // 8
    return image[: rows * 8, : columns * 8].reshape(rows, 8, columns, 8).swapaxes(1, 2).reshape(-1, 64)
