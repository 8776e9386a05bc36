"""The frames of a segment, seen once by all who look at them: the tracker, and moderation now and then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared.context import Context
from shared.events.choices import Options
from shared.isolated.frames import Frames, decoded
from shared.moderation.samples import Samples
from shared.video.canvas import FrameCanvas
from shared.video.facts import Facts
from shared.video.faults import check_damage
from shared.video.plan import Part
from shared.video.square import Square
from shared.vision.tracking.finishing import Cast, finish
from shared.vision.tracking.tracker import Tracker
from shared.vision.tracking.trail import Models, Pace

_PAST = 12
"""Frames of the part before that the tracker sees: what it smooths over has a past at the segment's begin."""


@dataclass(frozen=True)
class Following:
    ctx: Context
    options: Options
    facts: Facts
    part: Part
    models: Models

    def follow(self, clip: Path, samples: Samples) -> tuple[Cast, tuple[str, ...]]:
        """Who is in the part, how it is damaged, in words as in Facts, and what changes in it.

        Raises what decoding does, MediaTruncatedError and MediaCorruptError for damage that is not to be passed over.
        """
        pace = Pace(every=self.ctx.video.detect_every, min_score=min(self.options.min_score, 0.5))
        tracker, square, own = Tracker(self.models, pace), Square(self.facts), 0
        with decoded(clip, self.facts, start=self._from(), held=pace.back + 1) as frames:
            for frame in frames:
                if frame.pts >= self.part.end:
                    continue  # its damage is known only at the end
                self.ctx.deadline.check()
                tracker.feed(FrameCanvas(frame, square), frame.pts, cut=frame.cut)
                if frame.pts >= self.part.start:
                    own += 1
                    samples.look(frame)
        return finish(tracker.finish(), pace.gap), (*self._damage(frames, own), *frames.changes)

    def _from(self) -> int:
        if self.part.cut:
            return self.part.start
        ticks = self.facts.time_base[1] * self.facts.rate[1] * _PAST
        return self.part.start - ticks // max(1, self.facts.time_base[0] * self.facts.rate[0])

    def _damage(self, frames: Frames, own: int) -> tuple[str, ...]:
        missing = ("frames_damaged",) if own < self.part.frames and not frames.damage else ()
        words = (*frames.damage, *missing)
        check_damage(words, self.options.damaged)
        return words
