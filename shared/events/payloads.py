"""The shapes that travel between stages: frozen dataclasses, references instead of pixels.

Who the tenant is never stands in here: it comes from the event's `tenantid` extension, which intake sets
after authentication. `job` repeats the event's `subject`; the harness refuses an event where they differ.
Unknown keys are ignored and missing ones refused (a field with a default is not missing), so that producers
can be deployed first. `medium` is the `media` extension of events that carry the payload, and empty where several
do. Knows nothing but the standard library, the options and the error tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shared.errors import JsonValue
from shared.events.choices import Options


@dataclass(frozen=True)
class ObjectRef:
    """One object of the tenant, by key and content (claim check)."""

    key: str
    """Full key in the object store; always inside `tenants/<tenant>/`."""
    digest: str
    """SHA-256 of the bytes, 64 lower-case hex digits; a reader refuses other bytes."""
    size: int
    """Bytes."""
    content_type: str
    """Media type as found from the content, never from the name."""


@dataclass(frozen=True)
class Size:
    """Pixels of an upright picture."""

    width: int
    height: int


@dataclass(frozen=True)
class Face:
    """One face as found, in pixels of the upright picture."""

    x: float
    y: float
    width: float
    height: float
    score: float
    """Detector score 0..1."""
    yaw: float = 0.0
    """Degrees, positive when the face looks to the viewer's right."""


@dataclass(frozen=True)
class Job:
    """Two pictures, or a picture and a video, and what to do with them. Made by intake, passed on by moderate."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = ""
    job: str
    source: tuple[ObjectRef, ...]
    target: ObjectRef
    options: Options = field(default_factory=Options)
    origin: str = "http"
    """`http`, `upload` or `batch`."""
    priority: str = "interactive"
    """`interactive` or `batch`."""
    created: str = ""
    """RFC 3339, UTC."""
    reference: ObjectRef | None = None
    """A picture of the person whose face in the target is meant, for `faces: reference`."""
    media: str = "image"
    """What the target is: `image` or `video`. An animated picture is a video."""


@dataclass(frozen=True)
class Segment:
    """One part of a video target, to be worked on by itself. Made by split; asked for by assemble as others end."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = "segment"
    job: str
    request: Job
    plan: ObjectRef
    """JSON: `shared.video.plan.Plan`, the same for all segments of a job."""
    index: int
    """Counted from 0 in the order of time."""


@dataclass(frozen=True)
class Faces:
    """What detect found; the dense landmarks lie in the store."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = "image"
    job: str
    request: Job
    source_face: Face
    target_faces: tuple[Face, ...]
    """In the documented order: left to right by the centre, then top to bottom."""
    landmarks: ObjectRef
    """`.npz` of float32, pixels of the upright pictures: `source` [468, 3], `sources` [S, 468, 3], `target`
    [N, 468, 3]; `source_points` [S, 5, 2] and `target_points` [N, 5, 2] are NaN where no finer model measured them."""
    source: int = 0
    """Index into `request.source` of the most frontal face: the one in `source_face`."""
    source_faces: tuple[Face, ...] = ()
    """The face of each source picture."""
    assigned: tuple[int, ...] = ()
    """For each target face the index of its source; empty: all get the one identity that all sources show."""
    warnings: tuple[str, ...] = ()
    """What will weaken the likeness: `source_turned`, `source_small`."""


@dataclass(frozen=True)
class Tracks:
    """Who is where in every frame of a segment; what was measured lies in the store."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = "segment"
    job: str
    request: Job
    plan: ObjectRef
    index: int
    tracks: ObjectRef
    """`.npz`: `shared.vision.tracking.tracks.Tracks`."""
    landmarks: ObjectRef
    """The sources' as in Faces; `target` is [0, 468, 3]."""
    source: int = 0
    source_faces: tuple[Face, ...] = ()
    """The face of each source picture."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Media:
    """A swapped picture, not yet in its final format."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = "image"
    job: str
    request: Job
    pixels: ObjectRef
    """`.npy`: uint8 [height, width, 3 or 4], BGR or BGRA, sRGB, upright."""
    faces: tuple[Face, ...]
    """The target faces that were swapped, in pixels of the target."""
    size: Size | None = None
    """The target's own; the pixels may have been enlarged since."""
    landmarks: ObjectRef | None = None
    """As in Faces, as long as the picture has the size in which they were found."""
    source_faces: tuple[Face, ...] = ()
    """The faces that were put there, in pixels of their source pictures."""
    warnings: tuple[str, ...] = ()
    """As in Result."""
    provider: str = ""
    """As in Result."""


@dataclass(frozen=True)
class Clip:
    """A swapped segment: its pictures only, in their final encoding."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = "segment"
    job: str
    request: Job
    plan: ObjectRef
    index: int
    clip: ObjectRef
    """Matroska with one video stream; its timestamps are those of the target."""
    frames: int
    frames_swapped: int = 0
    frames_without_face: int = 0
    """None found, or none that the job means."""
    source_faces: tuple[Face, ...] = ()
    warnings: tuple[str, ...] = ()
    """As in Result."""
    provider: str = ""
    """As in Result."""


@dataclass(frozen=True)
class Video:
    """The joined video with everything of the original that is not a face."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = "video"
    job: str
    request: Job
    video: ObjectRef
    size: Size
    """As shown: upright, square pixels not implied."""
    seconds: float
    frames: int
    frames_swapped: int
    frames_without_face: int
    source_faces: tuple[Face, ...] = ()
    warnings: tuple[str, ...] = ()
    """As in Result."""
    provider: str = ""
    """As in Result."""


@dataclass(frozen=True)
class Result:
    """The finished picture or video."""

    outcome: ClassVar[str] = "completed"
    medium: ClassVar[str] = ""
    job: str
    image: ObjectRef
    """The picture, or the video."""
    width: int
    height: int
    faces: tuple[Face, ...]
    """The target faces that were swapped, in pixels of the result; none is listed of a video."""
    link: str
    """Time-limited address of the picture (presigned on S3, file: on a folder store)."""
    expires: str
    """RFC 3339: when the link stops working."""
    origin: str = "http"
    resized_from: Size | None = None
    """What the swapped picture measured before it was reduced for `client` or the tenant's limit."""
    source_faces: tuple[Face, ...] = ()
    """The faces that were put there, in pixels of their source pictures."""
    warnings: tuple[str, ...] = ()
    """Why the result may look worse than it could with another source; nothing was refused for it. `source_turned`
    (beyond 35 degrees), `source_small` (below 80 pixels), and of the embedded swapper what every target shows:
    `source_shadowed` (hard shadows on both sides), `source_hidden` (little of the face is seen), `source_hard_light`,
    `source_glasses`, `source_mouth_covered`, `source_laughing`. By the tenant's moderation:
    `blurred_nsfw` (the whole picture), `blurred_words` (banned words)."""
    provider: str = ""
    """Where the swapper ran: `cpu`, `cuda` or `tensorrt`. `cpu` in an installation that prefers a GPU means that there
    was none."""
    media: str = "image"
    """`image` or `video`."""
    seconds: float = 0.0
    """Of a video."""
    frames: int = 1
    frames_swapped: int = 1
    frames_without_face: int = 0
    """Frames of a video in which no face was found that the job means."""


@dataclass(frozen=True)
class Rejection:
    """The caller's own fault: this job will never work as it was sent."""

    outcome: ClassVar[str] = "rejected"
    medium: ClassVar[str] = ""
    job: str
    stage: str
    code: str
    detail: str
    status: int
    """HTTP status of the same fault on the API."""
    context: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Our fault, after all retries: the original event is kept and can be replayed."""

    outcome: ClassVar[str] = "failed"
    medium: ClassVar[str] = ""
    job: str
    stage: str
    """The stage that could not be reached or kept failing."""
    code: str
    detail: str
    dead_letter: str
    """Id for `replay`."""


Payload = Job | Segment | Faces | Tracks | Media | Clip | Video | Result | Rejection | Failure
TERMINAL = (Result, Rejection, Failure)
"""A job ends with exactly one of these."""
