"""The shapes that travel between stages: frozen dataclasses, references instead of pixels.

Who the tenant is never stands in here: it comes from the event's `tenantid` extension, which intake sets
after authentication. `job` repeats the event's `subject`; the harness refuses an event where they differ.
Unknown keys are ignored and missing ones refused (a field with a default is not missing), so that producers
can be deployed first. Knows nothing but the standard library and the error tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from shared.errors import JsonValue


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
class Options:
    """What the caller may choose; every field has a default and a documented range (see docs/options.md)."""

    swapper: str = "mesh"
    """Catalogue name of the swapper."""
    faces: str = "many"
    """Target faces: `many` (all), `one` (the largest), or an index counted left to right from 0."""
    source_face: str = "one"
    """Source face: `one` (the largest; near-equal ones are ambiguous), `largest` (no question asked), or an index."""
    eyes: str = "target"
    """`target` keeps the target's own eyes and gaze, `source` paints the source's."""
    shape: float = 0.5
    """How far nose, eyes, brows and mouth move to the source's proportions, 0..1."""
    min_face: int = 20
    """Smallest face side in pixels of the target that is swapped, 18..4096."""
    format: str = "same"
    """`same` as the target where it can be written, `jpeg`, `png`, `webp`, `avif`, `tiff`, `bmp` or `gif`."""
    quality: int = 92
    """JPEG, WebP and AVIF quality, 1..100."""


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
    """Two pictures and what to do with them. Made by intake, passed on by moderate."""

    outcome: ClassVar[str] = "completed"
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


@dataclass(frozen=True)
class Faces:
    """What detect found; the dense landmarks lie in the store."""

    outcome: ClassVar[str] = "completed"
    job: str
    request: Job
    source_face: Face
    target_faces: tuple[Face, ...]
    """In the documented order: left to right by the centre, then top to bottom."""
    landmarks: ObjectRef
    """`.npz`: `source` float32 [468, 3] and `target` float32 [N, 468, 3], pixels of the upright pictures."""
    source: int = 0
    """Index into `request.source` of the picture whose face is used."""


@dataclass(frozen=True)
class Media:
    """A swapped picture, not yet in its final format."""

    outcome: ClassVar[str] = "completed"
    job: str
    request: Job
    pixels: ObjectRef
    """`.npy`: uint8 [height, width, 3 or 4], BGR or BGRA, sRGB, upright."""
    faces: tuple[Face, ...]
    """The target faces that were swapped."""


@dataclass(frozen=True)
class Result:
    """The finished picture."""

    outcome: ClassVar[str] = "completed"
    job: str
    image: ObjectRef
    width: int
    height: int
    faces: tuple[Face, ...]
    link: str
    """Time-limited address of the picture (presigned on S3, file: on a folder store)."""
    expires: str
    """RFC 3339: when the link stops working."""
    origin: str = "http"


@dataclass(frozen=True)
class Rejection:
    """The caller's own fault: this job will never work as it was sent."""

    outcome: ClassVar[str] = "rejected"
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
    job: str
    stage: str
    """The stage that could not be reached or kept failing."""
    code: str
    detail: str
    dead_letter: str
    """Id for `replay`."""


Payload = Job | Faces | Media | Result | Rejection | Failure
TERMINAL = (Result, Rejection, Failure)
"""A job ends with exactly one of these."""
