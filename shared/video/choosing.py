"""In which container, codec and pixel format a video is written: what was asked for, as far as it can be.

Knows the facts and the pixel formats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared.video.facts import Facts
from shared.video.formats import Layout, layout, planar

ANIMATIONS = ("gif", "webp", "png")
LOSSLESS = "ffv1"
"""Of the clips that become an animated picture, which is made of pixels when all of them are there."""
CODECS = {"mp4": ("h264", "h265", "av1", "vp9"), "mov": ("h264", "h265"), "webm": ("vp9", "av1")}
CODECS["mkv"] = CODECS["mp4"]
"""By container; the first is taken where the one asked for is not among them."""
_OURS = {"h264": "h264", "hevc": "h265", "av1": "av1", "vp9": "vp9"}
"""FFmpeg's names of codecs that are written here too."""
_OBLONG = 4
"""No camera's pixels are so oblong: what a container says beyond is not believed."""
_HDR = (16, 18)
"""Transfer characteristics of ITU-T H.273: PQ and HLG."""
_TRANSPARENT = ("webm", "mkv")
"""Containers that carry VP9's second, hidden picture."""
_DEPTHS = {"h264": (8, 10), "h265": (8, 10, 12), "av1": (8, 10), "vp9": (8,)}
"""What the encoders in PyAV's wheel were built for: its VP9 writes 8 bits only."""


@dataclass(frozen=True)
class Target:
    container: str
    """`mp4`, `mov`, `mkv`, `webm`, `gif`, `webp` or `png`."""
    codec: str
    """`h264`, `h265`, `av1`, `vp9`, or of an animated picture `ffv1`."""
    pixel_format: str
    """FFmpeg's name of a planar format."""
    width: int
    """Coded pixels: the source's, or one more where the codec takes no odd number."""
    height: int
    alpha: bool = False
    mapped: bool = False
    """Whether HDR becomes an ordinary picture, since 8 bits are too few for it."""
    warnings: tuple[str, ...] = ()
    """What could not be kept: `codec_changed`, `alpha_dropped`, `depth_reduced`, `chroma_reduced`, `tone_mapped`; of an
    animated picture `audio_dropped`, `subtitles_dropped` and `chapters_dropped`."""


def finished(facts: Facts, target: Target) -> tuple[int, int]:
    """Width and height of what is written, as it is shown: no animated picture knows of turns and oblong pixels."""
    width, height = (target.height, target.width) if facts.rotation % 180 else (target.width, target.height)
    across, down = facts.stretch
    if target.container not in ANIMATIONS or max(across, down) > _OBLONG:
        return width, height
    return round(width * across), round(height * down)


def choose(facts: Facts, container: str = "same", codec: str = "same") -> Target:
    """`container` and `codec` as in `shared.events.choices.Options`."""
    place = facts.container if container == "same" else container
    source = planar(facts.pixel_format)
    if place in ANIMATIONS:
        return _animation(facts, place, source)
    name, warnings = _codec(facts, place, codec)
    alpha = facts.alpha and name == "vp9" and place in _TRANSPARENT
    if facts.alpha and not alpha:
        warnings = (*warnings, "alpha_dropped")
    written, reduced = _pixels(layout(source), name, alpha)
    mapped = facts.colour.transfer in _HDR and layout(written).depth == 8 < facts.depth
    width, height = _size(facts, name, layout(written))
    warnings = (*warnings, *reduced, *(("tone_mapped",) if mapped else ()))
    return Target(place, name, written, width, height, alpha, mapped, warnings)


def _animation(facts: Facts, container: str, source: str) -> Target:
    mapped = facts.colour.transfer in _HDR
    kinds = {other.kind for other in facts.others}
    lost = {
        "audio_dropped": "audio" in kinds,
        "subtitles_dropped": "subtitle" in kinds,
        "chapters_dropped": facts.chapters > 0,
        "tone_mapped": mapped,
    }
    base = Target(container, LOSSLESS, "gbrp" if mapped else source, facts.width, facts.height)
    alpha = facts.alpha and not mapped
    return replace(base, alpha=alpha, mapped=mapped, warnings=tuple(word for word, is_so in lost.items() if is_so))


def _codec(facts: Facts, container: str, codec: str) -> tuple[str, tuple[str, ...]]:
    able = CODECS[container]
    asked = _OURS.get(facts.codec, "") if codec == "same" else codec
    if codec == "same" and asked == "vp9" and facts.depth > 8:
        asked = ""  # written by another codec, none of its bits is lost
    if asked in able:
        return asked, ()
    return _fallback(facts, container), ("codec_changed",) if facts.container not in ANIMATIONS else ()


def _fallback(facts: Facts, container: str) -> str:
    """What most players know, of the codecs that lose nothing of this video."""
    if facts.alpha and "vp9" in CODECS[container] and container in _TRANSPARENT:
        return "vp9"
    if facts.depth > 8:
        return "av1" if container == "webm" else "h265"
    return CODECS[container][0]


def _pixels(source: Layout, codec: str, alpha: bool) -> tuple[str, tuple[str, ...]]:
    """The format that loses least, and what it loses."""
    depth = max((able for able in _DEPTHS[codec] if able <= source.depth), default=8)
    reduced = ("depth_reduced",) if depth < source.depth else ()
    if alpha:
        return "yuva420p", tuple(word for word, lost in zip(_LOST, _losses(source), strict=True) if lost)
    if source.kind == "gray" and codec in ("h264", "h265"):
        return _named("gray", depth), reduced
    sampling = _sampling(source)
    if source.kind == "gbr" or (codec == "av1" and sampling != "420"):  # few players know luma and whole colours
        return _named("yuv420p", depth), (*reduced, "chroma_reduced")
    return _named(f"yuv{sampling}p", depth), reduced


_LOST = ("depth_reduced", "chroma_reduced")


def _losses(source: Layout) -> tuple[bool, bool]:
    """Of a picture that becomes 8 bits deep, with half the colours each way."""
    return source.depth > 8, source.kind != "gray" and source.shift != (1, 1)


def _sampling(source: Layout) -> str:
    """The coarsest that loses no colour."""
    if source.kind == "gray":
        return "420"
    return {(1, 1): "420", (1, 0): "422", (2, 2): "420", (2, 0): "422"}.get(source.shift, "444")


def _named(name: str, depth: int) -> str:
    return name if depth == 8 else f"{name}{depth}le"


def _size(facts: Facts, codec: str, pixels: Layout) -> tuple[int, int]:
    """VP9 and AV1 keep an odd size; the others have none where colours are halved, so a column or row is repeated."""
    if codec in ("vp9", "av1"):
        return facts.width, facts.height
    columns, rows = (1 << shift for shift in pixels.shift)
    return -(-facts.width // columns) * columns, -(-facts.height // rows) * rows
