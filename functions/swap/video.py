"""One segment of a video: its frames decoded, the faces in them replaced, and the clip written, all at the same time.

The decoder is a process, the encoder a thread; between them stand a few frames, whatever the clip's length. What shows
no face that is meant is passed on as it is: groups of pictures without being encoded again where that can be, frames
without being converted.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from functions.swap.faces import Faces
from functions.swap.reading import Reader
from shared.context import Context
from shared.events.payloads import Clip, Tracks
from shared.jobs.film import open_plan
from shared.video.facts import Facts
from shared.vision.tracking import record
from shared.vision.tracking.tracks import Tracks as Found

if TYPE_CHECKING:
    from shared.video.encode import ClipWriter
    from shared.video.frame import Frame
    from shared.video.groups import Group

CONTENT_TYPE = "video/x-matroska"


def clip(event: Tracks, ctx: Context) -> Clip:
    """Raises what decoding a video does, EncodeFailedError, UnusableOptionError."""
    plan = open_plan(ctx.storage.load(event.plan))
    part = plan.parts[event.index]
    found = record.read(ctx.storage.load(event.tracks))
    faces = Faces(event, ctx)
    with TemporaryDirectory(prefix="swap-") as name:
        source, made = Path(name) / "source.mkv", Path(name) / "clip.mkv"
        ctx.storage.fetch(part.clip, source)
        making = _Making(faces, ctx, plan.facts, found, (part.start, part.end))
        frames = making.write(source, made)
        ref = ctx.storage.save_file(f"clip.{event.index}.mkv", made, CONTENT_TYPE)
    return Clip(
        job=event.job,
        request=event.request,
        plan=event.plan,
        index=event.index,
        clip=ref,
        frames=frames,
        frames_swapped=min(making.swapped, frames),
        frames_without_face=max(frames - making.swapped, 0),
        source_faces=event.source_faces,
        warnings=tuple(dict.fromkeys((*event.warnings, *faces.warnings))),
        provider=ctx.models.provider(event.request.options.swapper),
    )


class _Making:
    def __init__(self, faces: Faces, ctx: Context, facts: Facts, found: Found, span: tuple[int, int]) -> None:
        self._faces, self._ctx, self._facts, self._found = faces, ctx, facts, found
        self._start, self._end = span
        self._own = {at for at in found.pts.tolist() if self._start <= at < self._end}
        self.swapped = sum(bool(found.to_swap(at)) for at in self._own)
        """Frames in which a face is replaced."""

    def write(self, source: Path, out: Path) -> int:
        """The clip at `out`; the number of its frames."""
        from shared.video.choosing import ANIMATIONS, LOSSLESS, choose
        from shared.video.encode import ClipWriter
        from shared.video.encoders import Means
        from shared.video.groups import groups

        options, facts = self._faces.event.request.options, self._facts
        target, means = choose(facts, options.format, options.codec), Means(self._ctx.video.encoder)
        with (
            ClipWriter(out, source, facts, target, quality=options.quality, means=means) as writer,
            Reader(source, facts, self._found, self._start) as reader,
        ):
            if target.codec == LOSSLESS or facts.container in ANIMATIONS:  # nothing could be passed on
                self._encode(writer, reader, self._end - 1)
            else:
                for group in groups(source):
                    self._take(group, writer, reader)
        return writer.frames

    def _take(self, group: Group, writer: ClipWriter, reader: Reader) -> None:
        self._ctx.deadline.check()
        last = group.times[-1]
        if last < self._start:
            return  # of the part before
        if self._passes(group) and writer.takes(group):
            reader.pass_over(last)
            writer.copy(group)
        else:
            self._encode(writer, reader, min(last, self._end - 1))

    def _passes(self, group: Group) -> bool:
        """Whether all frames of a group are shown, are of this part, and have no face that is meant."""
        return all(at in self._own and not self._found.to_swap(at) for at in group.times)

    def _encode(self, writer: ClipWriter, reader: Reader, last: int) -> None:
        """Frames up to the time `last`."""
        for batch in reader.batches(last):
            self._ctx.deadline.check()
            self._replace(batch)
            for frame in batch:
                if frame.pts >= self._start:
                    writer.encode(frame)

    def _replace(self, batch: list[Frame]) -> None:
        """The faces in some frames, in place."""
        from shared.video.canvas import FrameCanvas
        from shared.video.square import Square

        square = Square(self._facts)
        shown = [(FrameCanvas(frame, square), self._found.to_swap(frame.pts)) for frame in batch]
        if shown := [(canvas, places) for canvas, places in shown if places]:
            self._faces.replace(*zip(*shown, strict=True))
