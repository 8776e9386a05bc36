"""The clips of all segments, and what the target has beside its pictures, made one file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from shared.context import Context
from shared.events.payloads import Clip, Size, Video
from shared.jobs.film import Done, Film
from shared.rejections import NoFaceInTargetError, ObjectGoneError
from shared.video.facts import DAMAGE
from shared.video.plan import Plan

if TYPE_CHECKING:
    from shared.video.choosing import Target


@dataclass(frozen=True)
class Joining:
    event: Clip
    """Of the segment whose event joins."""
    plan: Plan
    film: Film
    ctx: Context

    def video(self) -> Video | list[int]:
        """The joined video, or the segments whose clips are gone.

        Raises NoFaceInTargetError where no segment shows a face that is meant, ObjectGoneError where the target is.
        """
        done = [self.film.read(index) for index in range(len(self.plan.parts))]
        if not any(one.frames_swapped for one in done):
            raise NoFaceInTargetError("No frame of the video shows a face that the job means.")
        with TemporaryDirectory(prefix="assemble-") as name:
            folder = Path(name)
            clips, lost = self._fetched(done, folder)
            return lost or self._joined(done, clips, folder)

    def _fetched(self, done: list[Done], folder: Path) -> tuple[list[Path], list[int]]:
        """The clips as files, and the segments that have none any more."""
        paths, lost = [folder / f"clip.{index:05}.mkv" for index in range(len(done))], list[int]()
        for index, one in enumerate(done):
            self.ctx.deadline.check()
            try:
                self.ctx.storage.fetch(one.clip, paths[index])
            except ObjectGoneError:
                lost.append(index)
        return paths, lost

    def _joined(self, done: list[Done], clips: list[Path], folder: Path) -> Video:
        from shared.video.choosing import choose, finished
        from shared.video.sniff import KINDS

        event, facts, options = self.event, self.plan.facts, self.event.request.options
        choice = choose(facts, options.format, options.codec)
        out = folder / f"video.{choice.container}"
        told = tuple(dict.fromkeys((*facts.damage, *(word for one in done for word in one.warnings))))
        warnings = self._written(clips, out, choice, tuple(word for word in told if word in DAMAGE))
        self.ctx.deadline.check()
        said = (*told, *choice.warnings, *warnings)
        return Video(
            job=event.job,
            request=event.request,
            video=self.ctx.storage.save_file(out.name, out, KINDS[choice.container].content_type),
            size=Size(*finished(facts, choice)),
            seconds=round(facts.seconds, 3),
            frames=sum(one.frames for one in done),
            frames_swapped=sum(one.frames_swapped for one in done),
            frames_without_face=sum(one.frames_without_face for one in done),
            source_faces=event.source_faces,
            warnings=tuple(dict.fromkeys(said)),
            provider=event.provider,
        )

    def _written(self, clips: list[Path], out: Path, choice: Target, damage: tuple[str, ...]) -> tuple[str, ...]:
        """What could not be kept of what lies beside the pictures. `damage`: also what only decoding brought to light,
        so that fewer frames came out than packets went in."""
        from shared.isolated import sound
        from shared.video.animation import animate
        from shared.video.choosing import ANIMATIONS
        from shared.video.join import join

        request, plan = self.event.request, replace(self.plan, facts=replace(self.plan.facts, damage=damage))
        if choice.container in ANIMATIONS:
            return animate(clips, plan, out, choice, request.options.quality)
        target = out.with_name("target")
        self.ctx.storage.fetch(request.target, target)
        self.ctx.deadline.check()
        return join(target, clips, plan, out, choice, transcode=sound.transcode)
