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
class Pairing:
    """Which source goes onto which target face."""

    source: int
    """Index into the job's sources, counted from 0."""
    target: int
    """Index of a target face, counted from 0 in the order that `order` says."""


@dataclass(frozen=True)
class Options:
    """What the caller may choose; every field has a default and a documented range (see docs/options.md)."""

    swapper: str = "mesh"
    """Catalogue name of the swapper."""
    faces: str = "many"
    """Target faces: `many` (all), `one` (the largest), `reference` (those of the person on the `reference` picture;
    needs a face recogniser that the tenant may use), or an index counted from 0 in the order that `order` says, 0..999.
    """
    order: str = "position"
    """How an index counts the target faces: `position` (left to right by the centre, then top to bottom), `size`
    (largest first) or `score` (surest first). All found faces count, also those too small or too unsure to be swapped.
    """
    mapping: tuple[Pairing, ...] = ()
    """List of `{"source": i, "target": j}`, at most 64: the face of source picture i goes onto target face j, and no
    other face is swapped. A target stands at most once, a source any number of times. Empty: all sources show one
    person, whose identity goes onto every chosen face. Not together with another `faces` than `many`."""
    similarity: float = 0.4
    """For `faces: reference`: smallest cosine between the recogniser's vectors of two faces of one person, 0..1."""
    source_face: str = "one"
    """Source face: `one` (the largest; near-equal ones are ambiguous), `largest` (no question asked), or an index
    counted left to right from 0, 0..999."""
    unsuited_source: str = "refuse"
    """What becomes of a source of which a poor picture would be made, before the swap: `refuse` refuses it with
    `source_unsuited` where the picture would be poor whatever the target (`source_shadowed`, `source_hidden`: embedded
    swapper only), `strict` for any warning about it that the swapper gives, `warn` never. Warnings that refuse nothing
    stand in the result."""
    min_face: int = 20
    """Smallest face side in pixels of the target that is swapped, 18..4096."""
    min_score: float = 0.5
    """Smallest detector score of a target face that is swapped, 0.2..1. Below 0.5 more faces are found and counted."""
    eyes: str = "target"
    """`target` keeps the target's own eyes and gaze, `source` paints the source's. Embedded swapper (`mesh`) only."""
    shape: float = 0.5
    """How far nose, eyes, brows and mouth move to the source's proportions, 0..1. Embedded swapper only."""
    boost: int = 0
    """Side in pixels at which a learned swapper works: 0 for the model's own, or a multiple of it from 256 to 1024 in
    steps of 128."""
    masks: tuple[str, ...] = ("box",)
    """What limits a learned swapper's pixels, a list of `box` (feathered crop), `occlusion` (not over hands, hair,
    glasses) and `region` (skin and features only); joined by minimum. The embedded swapper has masks of its own:
    its jobs load no model for these."""
    mask_blur: float = 0.3
    """Feather of the box mask as a part of half the crop, 0..1."""
    mask_padding: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    """Top, right, bottom and left part of the crop that the box mask leaves out, 0..0.45 each."""
    colour_match: bool = False
    """Whether a learned swapper's crop gets the mean and spread of the target's colours."""
    enhancer: str = ""
    """Catalogue name of a model that restores the swapped faces; empty: none."""
    enhance_blend: float = 0.8
    """Share of the restored face, 0..1."""
    upscaler: str = ""
    """Catalogue name of a model that enlarges the whole picture; empty: none. What was enlarged is at most 3840 x 2160
    or as large as the target."""
    client: str = "original"
    """Where the result is shown: `original` (as large as it is), `web` (at most 1920 x 1080) or `mobile` (at most
    1280 x 720), either way up. A smaller picture is never enlarged for it."""
    format: str = "same"
    """`same` as the target where it can be written, `jpeg`, `png`, `webp`, `avif`, `tiff`, `bmp` or `gif`."""
    quality: int = 92
    """JPEG, WebP and AVIF quality, 1..100."""


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
    reference: ObjectRef | None = None
    """A picture of the person whose face in the target is meant, for `faces: reference`."""


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
class Media:
    """A swapped picture, not yet in its final format."""

    outcome: ClassVar[str] = "completed"
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
class Result:
    """The finished picture."""

    outcome: ClassVar[str] = "completed"
    job: str
    image: ObjectRef
    width: int
    height: int
    faces: tuple[Face, ...]
    """The target faces that were swapped, in pixels of the result."""
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
