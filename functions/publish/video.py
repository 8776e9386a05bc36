"""The last look at a finished video, its place among the results, its link: Video -> Result.

Nothing is encoded here, and nothing blurred: what a policy would blur is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from shared.context import Context
from shared.events.contract import VIDEO
from shared.events.payloads import Result, Video
from shared.imaging.codec import Picture, Plane
from shared.moderation.finished import FINISHED
from shared.moderation.looking import MODERATOR, Inspection

if TYPE_CHECKING:
    from shared.video.facts import Facts
    from shared.video.frame import Frame

SAMPLES = 120
"""Most frames that are looked at. Those of the target were looked at when they were decoded, one a second at least."""


def publish(event: Video, ctx: Context) -> Result:
    """Raises ContentRefusedError, ReviewNeededError."""
    from shared.video.sniff import KINDS

    kind = next(kind for kind in KINDS.values() if kind.content_type == event.video.content_type)
    name, seconds = f"{event.job}.{kind.name}", ctx.tenant.policy.link_seconds
    with TemporaryDirectory(prefix="publish-") as folder:
        path = Path(folder) / "video"
        ctx.storage.fetch(event.video, path)
        if ctx.models.chosen(MODERATOR):
            _look(path, event, ctx)
        video = ctx.storage.publish_file(name, path, event.video.content_type)
    return Result(
        job=event.job,
        image=video,
        width=event.size.width,
        height=event.size.height,
        faces=(),
        link=ctx.storage.link(video, seconds, name),
        expires=(datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds"),
        origin=event.request.origin,
        source_faces=event.source_faces,
        warnings=event.warnings,
        provider=event.provider,
        media=VIDEO,
        seconds=event.seconds,
        frames=event.frames,
        frames_swapped=event.frames_swapped,
        frames_without_face=event.frames_without_face,
    )


def _look(path: Path, event: Video, ctx: Context) -> None:
    inspection = Inspection(ctx, video=True)
    for picture in _pictures(path, event):
        inspection.look(FINISHED, picture)
    inspection.close()


def _pictures(path: Path, event: Video) -> Iterator[Picture]:
    """Frames as they are shown, in the order of time."""
    from shared.isolated.facts import facts
    from shared.isolated.frames import decoded
    from shared.video.choosing import ANIMATIONS
    from shared.video.planes import bgr
    from shared.video.samples import key_frames

    most = 2 * (event.size.width + 1) * (event.size.height + 1)
    found = facts(path, max_pixels=most, max_seconds=10**6, max_frames=10**9)
    step, source = 1, path.with_name("samples")
    if found.container in ANIMATIONS:  # of which every frame is needed for the next
        step, source = -(-found.frames // SAMPLES), path
    else:
        count = key_frames(path, found.index, source, SAMPLES)
        found = replace(found, container="mkv", frames=count, start=0, end=count)
    with decoded(source, found) as frames:
        for number, frame in enumerate(frames):
            if number % step == 0:
                alpha = _alpha(frame, found) if found.alpha else None
                yield Picture(bgr(frame, (0, 0, *found.shown), found), alpha, "png")


def _alpha(frame: Frame, found: Facts) -> Plane:
    from shared.video.turning import upright

    return upright((frame.planes[-1] >> (found.depth - 8)).astype(np.uint8), found.rotation)
