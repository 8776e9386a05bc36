"""A video target as clips in the store, and the plan of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from shared.context import Context
from shared.events.choices import by_who
from shared.events.payloads import Job, ObjectRef
from shared.isolated import facts
from shared.video.facts import Facts
from shared.video.faults import check_damage
from shared.video.plan import Part, Plan

CLIP = "video/x-matroska"


@dataclass(frozen=True)
class Dividing:
    event: Job
    ctx: Context

    def plan(self) -> Plan:
        """Raises what reading a video does, and MediaTruncatedError or MediaCorruptError for damage that is not asked
        to be passed over."""
        with TemporaryDirectory(prefix="split-") as name:
            target = Path(name) / "target"
            self.ctx.storage.fetch(self.event.target, target)
            self.ctx.deadline.check()
            found = self._facts(target)
            parts = tuple(self._parts(target, found, Path(name)))
        return Plan(found, parts, self.ctx.tenant.policy.max_segments, by_who(self.event.options))

    def _facts(self, target: Path) -> Facts:
        policy = self.ctx.tenant.policy
        limits = {"max_seconds": policy.max_seconds, "max_frames": policy.max_frames}
        found = facts.facts(target, max_pixels=policy.max_pixels, **limits)
        check_damage(found.damage, self.event.options.damaged)
        return found

    def _parts(self, target: Path, found: Facts, folder: Path) -> Iterator[Part]:
        from shared.video.cut import cut

        for number, piece in enumerate(cut(target, found, folder, self.ctx.video.segment_seconds)):
            self.ctx.deadline.check()
            clip = self.event.target if piece.path == target else self._kept(piece.path, number)
            yield Part(clip, piece.start, piece.end, piece.frames, piece.cut)

    def _kept(self, path: Path, number: int) -> ObjectRef:
        ref = self.ctx.storage.save_file(f"clip.{number}.mkv", path, CLIP)
        path.unlink()
        return ref
