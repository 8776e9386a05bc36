"""A video's records for tests: a plan of so many parts, and the clips of its segments."""

from __future__ import annotations

from shared.events.payloads import Clip, Job, ObjectRef
from shared.video.facts import Facts
from shared.video.plan import Part, Plan

JOB = "job-00000001"
REF = ObjectRef(f"tenants/demo/jobs/{JOB}/input/target", "0" * 64, 1, "video/mp4")
REQUEST = Job(JOB, (REF,), REF, media="video")


def facts(frames: int) -> Facts:
    return Facts(
        container="mp4",
        codec="h264",
        profile="High",
        pixel_format="yuv420p",
        index=0,
        width=64,
        height=48,
        rotation=0,
        sample_aspect=(1, 1),
        time_base=(1, 25),
        start=0,
        end=frames,
        frames=frames,
        rate=(25, 1),
    )


def plan(parts: int, window: int = 4, *, alone: bool = False, frames: int = 10) -> Plan:
    """Of `frames` frames each."""
    made = (Part(REF, n * frames, (n + 1) * frames, frames, cut=n == 0) for n in range(parts))
    return Plan(facts(parts * frames), tuple(made), window, alone)


def clip(index: int, *, swapped: int = 1, made: ObjectRef = REF) -> Clip:
    return Clip(JOB, REQUEST, REF, index, made, 10, swapped, 10 - swapped)
