"""Parts decoded in the limited process, as stages do it, and written anew: the clock of clips holds on both sides."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from shared.isolated.frames import decoded
from shared.video.choosing import choose
from shared.video.cut import cut
from shared.video.encode import ClipWriter
from shared.video.groups import groups
from shared.video.join import join
from shared.video.plan import Part, Plan
from shared.video.sound import transcode
from tests.unit.video import made
from tests.unit.video.chain import facts, ssim
from tests.unit.video.made import NO_REF, Recipe


@pytest.mark.parametrize(
    "source",
    [
        Recipe(ticks=tuple(range(-2 * 512, 22 * 512, 512)), rotation=90),
        Recipe("mkv", "av1", tuple(range(1500, 2460, 40)), Fraction(1, 1000), pixels="yuv420p10le"),
    ],
    ids=["moved", "deep"],
)
def test_frames_of_the_limited_process_are_written_at_their_own_times(source: Recipe, tmp_path: Path) -> None:
    film = made.make(tmp_path / f"film.{source.container}", source)
    found = facts(film)
    choice = choose(found)
    parts, clips = [], []
    for piece in cut(film, found, tmp_path, 0.3, fewest=4):
        clip = tmp_path / f"clip.{len(clips)}.mkv"
        with (
            ClipWriter(clip, piece.path, found, choice, quality=92) as writer,
            decoded(piece.path, found, start=piece.start) as frames,
        ):
            for frame in frames:
                if frame.pts < piece.end:
                    writer.encode(frame)
        assert writer.frames == piece.frames
        clips.append(clip)
        parts.append(Part(NO_REF, piece.start, piece.end, piece.frames, piece.cut))
        assert sum(len(group.packets) for group in groups(clip)) == piece.frames
    out = tmp_path / f"out.{choice.container}"
    join(film, clips, Plan(found, tuple(parts), 1), out, choice, transcode=transcode)
    before, after = made.decoded(film), made.decoded(out)
    assert len(parts) > 1
    assert [at for at, _ in after] == [at for at, _ in before]
    assert min(ssim(new, old) for (_, new), (_, old) in zip(after, before, strict=True)) > 0.97
