"""Settings of videos. A part of `shared.settings`, which reads it. Knows the standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from shared.variables import env, one_of, whole


@dataclass(frozen=True)
class VideoSettings:
    """Videos."""

    segment_seconds: int = env("WAKESWAP_SEGMENT_SECONDS", whole(1, 3600), 5)
    """Seconds of a segment, the part of a video that is worked on by itself, as nearly as key frames allow."""
    detect_every: int = env("WAKESWAP_DETECT_EVERY", whole(1, 100), 5)
    """Frames from one look of the face detector at a video to the next; in between its faces are followed."""
    encoder: str = env("WAKESWAP_VIDEO_ENCODER", one_of("software", "nvenc"), "software")
    """What writes pictures: `software` (x264, x265, SVT-AV1, libvpx), or `nvenc` where the GPU can, which one frame
    shows, and `software` for the rest."""
    speed: str = env("WAKESWAP_VIDEO_SPEED", one_of("fast", "even", "fine"), "fast")
    """How long encoders may look for what saves bytes: `fast`, `even` or `fine`; docs/video.md has presets and figures.
    """
    stalled_seconds: int = env("WAKESWAP_STALLED_SECONDS", whole(60, 86_400), 1200)
    """Seconds without any work on a video after which the clock asks for its missing segments again; twice as long
    for each further time. Longer than an event may have to wait for its turn."""
