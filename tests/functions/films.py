"""Videos through split and assemble, with stages between them that decode every segment and write it as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from functions.assemble import main as assemble
from functions.split import main as split
from shared.events.choices import Options
from shared.events.payloads import Clip, Job, ObjectRef, Segment, Video
from shared.isolated.frames import decoded
from shared.jobs.film import open_plan
from shared.jobs.records import JobRecord, create
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore
from shared.tenancy.tenant import Policy, Tenant
from shared.video.choosing import choose
from shared.video.encode import ClipWriter
from shared.video_settings import VideoSettings
from tests.functions.chain import JOB, StageContext


@dataclass
class Films:
    """One job with a video target."""

    root: Path
    policy: Policy = field(default_factory=lambda: Policy(max_segments=3))
    segment_seconds: int = 1

    def __post_init__(self) -> None:
        self.store = LocalStore(self.root)
        self.worked: list[int] = []
        """Segments, in the order in which they were worked on."""

    def context(self, stage: str, cause: str = "0" * 32) -> StageContext:
        storage = TenantStore(self.store, "demo", JOB, stage)
        context = StageContext(storage, None, tenant=Tenant("demo", self.policy), cause=cause)  # type: ignore[arg-type]
        context.video = VideoSettings(segment_seconds=self.segment_seconds)
        return context

    def job(self, target: Path, content_type: str = "video/mp4", **options: str | int) -> Job:
        data = target.read_bytes()
        key = self.store.put(keys.inbox("demo", target.name), data, content_type=content_type).key
        ref = ObjectRef(key, hashlib.sha256(data).hexdigest(), len(data), content_type)
        job = Job(JOB, (ref,), ref, Options(**options), media="video")  # type: ignore[arg-type]
        create(self.store, "demo", JobRecord(job))
        return job

    def split(self, job: Job) -> tuple[Segment, ...]:
        return split.handle(job, self.context("split"))

    def work(self, segment: Segment) -> Clip:
        """What detect and swap make of a segment in which nobody is."""
        self.worked.append(segment.index)
        storage = self.context("swap").storage
        plan, options = open_plan(storage.load(segment.plan)), segment.request.options
        part, choice = plan.parts[segment.index], choose(plan.facts, options.format, options.codec)
        with TemporaryDirectory() as folder:
            source, made = Path(folder) / "part.mkv", Path(folder) / "clip.mkv"
            storage.fetch(part.clip, source)
            writer = ClipWriter(made, source, plan.facts, choice, quality=options.quality)
            with writer, decoded(source, plan.facts, start=part.start) as frames:
                for frame in frames:
                    if part.start <= frame.pts < part.end:
                        writer.encode(frame)
            ref = storage.save_file(f"clip.{segment.index}.mkv", made, "video/x-matroska")
        return Clip(JOB, segment.request, segment.plan, segment.index, ref, writer.frames, 1, writer.frames - 1)

    def assemble(self, clip: Clip, cause: str = "") -> tuple[Segment | Video, ...]:
        return assemble.handle(clip, self.context("assemble", cause or f"cause-{clip.index}"))

    def run(self, waiting: Iterable[Segment]) -> list[Video]:
        """Everything that follows from these segments, the last asked for first."""
        queue, videos = [*waiting], list[Video]()
        while queue:
            for made in self.assemble(self.work(queue.pop())):
                if isinstance(made, Video):
                    videos.append(made)
                else:
                    queue.append(made)
        return videos
