"""The stages of a video one after the other in this process: real models, a real folder store, no events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import av
import numpy as np

from functions.assemble import main as assemble
from functions.detect import main as detect
from functions.publish import main as publish
from functions.split import main as split
from functions.swap import main as swap
from shared.context import Models
from shared.events.choices import Options
from shared.events.payloads import Clip, Job, Result, Segment, Tracks, Video
from shared.isolated import facts
from shared.tenancy.tenant import Tenant
from tests.functions.chain import JOB, Chain, StageContext


@dataclass
class Film:
    root: Path
    models: Models
    tenant: Tenant = field(default_factory=lambda: Tenant("demo"))
    segment_seconds: int = 1

    def __post_init__(self) -> None:
        self.chain = Chain(self.root, self.models)
        self.store = self.chain.store
        self.clips: list[Clip] = []

    def context(self, stage: str, cause: str = "0" * 32) -> StageContext:
        context = self.chain.context(stage)
        video = replace(context.video, segment_seconds=self.segment_seconds)
        return replace(context, tenant=self.tenant, video=video, cause=cause)

    def job(self, source: Path, target: Path, reference: Path | None = None, **options: object) -> Job:
        found = facts.facts(target, max_pixels=50_000_000, max_seconds=600, max_frames=36_000)
        from shared.video.sniff import KINDS

        refs = [
            self.chain.put(f"x/{path.name}", path.read_bytes(), "image/png") for path in (source, reference) if path
        ]
        video = self.chain.put(f"x/target.{found.container}", target.read_bytes(), KINDS[found.container].content_type)
        return Job(
            JOB,
            (refs[0],),
            video,
            Options(**options),  # type: ignore[arg-type]
            reference=refs[1] if reference else None,
            media="video",
        )

    def segment(self, segment: Segment) -> Clip:
        tracks = detect.handle(segment, self.context("detect"))
        assert isinstance(tracks, Tracks)
        clip = swap.handle(tracks, self.context("swap"))
        assert isinstance(clip, Clip)
        return clip

    def video(self, job: Job) -> Video:
        waiting = list(split.handle(job, self.context("split")))
        for number in range(1000):
            clip = self.segment(waiting.pop(0))
            self.clips.append(clip)
            for found in assemble.handle(clip, self.context("assemble", str(number))):
                if isinstance(found, Video):
                    return found
                waiting.append(found)
        raise AssertionError("it has no end")

    def run(self, job: Job) -> tuple[Result, Path]:
        result = publish.handle(self.video(job), self.context("publish"))
        return result, self.root / result.image.key


def pictures(path: Path) -> list[np.ndarray]:
    """BGR, not turned."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="bgr24") for frame in container.decode(video=0)]


def told(path: Path) -> Mapping[str, object]:
    """What a player is told of a file."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        return {
            "size": (stream.width, stream.height),
            "audio": [audio.metadata.get("language", "") for audio in container.streams.audio],
            "videos": len(container.streams.video),
            "rotation": next(container.decode(video=0)).rotation,
        }
