"""What a caller may choose of a job. Knows nothing but the standard library."""

from __future__ import annotations

from dataclasses import dataclass


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
    What that means in a video stands in docs/tracking.md."""
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
    """`same` as the target where it can be written; of a picture `jpeg`, `png`, `webp`, `avif`, `tiff`, `bmp` or `gif`;
    of a video `mp4`, `mov`, `mkv`, `webm`, `gif`, `webp` or `png` (the last three: animated)."""
    codec: str = "same"
    """How a video's pictures are encoded: `same` as the target's where it can be written, `h264`, `h265`, `av1` or
    `vp9`."""
    quality: int = 92
    """Of JPEG, WebP, AVIF and video, 1..100 (docs/video.md says which constant rate factor that is)."""
    damaged: str = "refuse"
    """What becomes of a video that breaks off or has frames that cannot be decoded: `refuse`, or `finish` with what
    can be, the result then warning of the damage."""


def by_who(options: Options) -> bool:
    """Whether a job means single people, so that the parts of a video must agree on who they are."""
    return bool(options.mapping) or options.faces not in ("many", "reference")
