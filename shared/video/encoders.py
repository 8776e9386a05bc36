"""FFmpeg's encoders, opened for one video: speed, quality, colours, key frames, light.

Knows PyAV, the facts and what is to be written.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from logging import getLogger
from pathlib import Path

import av
from av.codec.context import Flags
from av.video.codeccontext import VideoCodecContext

from shared.video.choosing import LOSSLESS, Target
from shared.video.facts import Colour, Facts
from shared.video.faults import EncodeFailedError
from shared.video.formats import layout
from shared.video.light import Light
from shared.video.quality import rate_factor

log = getLogger(__name__)

SOFTWARE = {"h264": "libx264", "h265": "libx265", "av1": "libsvtav1", "vp9": "libvpx-vp9", LOSSLESS: LOSSLESS}
NVENC = {"h264": "h264_nvenc", "h265": "hevc_nvenc", "av1": "av1_nvenc"}
NUMBERED = ("h264_nvenc",)
"""Encoders that number H.264's parameter sets themselves, so that no others may stand beside them."""
SPEEDS = ("fast", "even", "fine")
_CPU, _WIDE = Path("/proc/cpuinfo"), frozenset({"avx512f", "avx2", "fma", "bmi2"})
_PRESETS = {
    "libx264": ("veryfast", "medium", "slow"),
    "libx265": ("superfast", "fast", "medium"),
    "libsvtav1": ("9", "7", "5"),
    "libvpx-vp9": ("realtime 8", "realtime 5", "good 3"),
    "h264_nvenc": ("p3", "p5", "p7"),
    "hevc_nvenc": ("p3", "p5", "p7"),
    "av1_nvenc": ("p3", "p5", "p7"),
}
GAP = 2
"""Most seconds between two key frames."""
_BT709 = Colour(primaries=1, transfer=1, matrix=1)
_RANGES = {False: 1, True: 2}
"""FFmpeg's numbers of limited and full range."""
FIELDS = {2: "tff", 3: "bff", 4: "bff", 5: "tff"}
"""FFmpeg's field orders as x264 and its filters name the field that is shown first: AV_FIELD_TT, BB, TB and BT."""
os.environ.setdefault("SVT_LOG", "1")
"""SVT-AV1 writes to standard error by itself: errors only."""


@dataclass(frozen=True)
class Means:
    """How an installation encodes."""

    encoder: str = "software"
    """`software` or `nvenc`."""
    speed: str = "fast"
    """One of `SPEEDS`."""
    threads: int = 0
    """Of an encoder; 0: as many as the machine has processors."""


@dataclass(frozen=True)
class Spec:
    facts: Facts
    target: Target
    quality: int
    """1..100."""
    means: Means = field(default_factory=Means)
    number: int = 0
    """Of H.264's parameter sets."""
    light: Light = field(default_factory=Light)
    field_order: int = 0
    """As FFmpeg numbers them."""


def encoder(codec: str, means: Means) -> str:
    """FFmpeg's name. Where NVENC is set but does not work here, the processor does its work, and the log says so."""
    hardware = NVENC.get(codec, "") if means.encoder == "nvenc" else ""
    return hardware if hardware and usable(hardware) else SOFTWARE[codec]


@cache
def usable(name: str) -> bool:
    """Whether an NVENC encoder encodes one frame here: without a GPU it fails only then."""
    try:
        context = av.CodecContext.create(name, "w")
        assert isinstance(context, VideoCodecContext)
        context.width, context.height, context.pix_fmt = 256, 256, "yuv420p"
        context.time_base, context.framerate = Fraction(1, 25), Fraction(25)
        found = [*context.encode(av.VideoFrame(256, 256, "yuv420p")), *context.encode()]
    except (av.error.FFmpegError, ValueError) as error:
        log.warning("encoder not usable: %s (%s); videos are encoded by the processor", name, error)
        return False
    return bool(found)


def configure(context: VideoCodecContext, name: str, spec: Spec) -> None:
    """Set and open `context` of the encoder `name`. Raises EncodeFailedError."""
    facts, target = spec.facts, spec.target
    context.width, context.height = target.width, target.height
    context.pix_fmt = _pixels(name, target.pixel_format)
    context.time_base = Fraction(*facts.time_base)
    context.framerate = rate(facts)
    context.sample_aspect_ratio = Fraction(*facts.sample_aspect) if all(facts.sample_aspect) else None
    paint(context, facts, target)
    context.thread_count = spec.means.threads
    context.flags |= Flags.global_header
    if spec.field_order:
        context.field_order = spec.field_order
    if name == "libx264" and spec.field_order in FIELDS:
        context.flags |= Flags.interlaced_dct | Flags.interlaced_me
    context.options = options(name, spec)
    try:
        context.open()
    except av.error.FFmpegError as error:
        raise EncodeFailedError(f"The encoder {name} does not take this video.") from error


def paint(context: VideoCodecContext, facts: Facts, target: Target) -> None:
    """Say how numbers are colours. What was red, green and blue becomes BT.709 where it is written as luma."""
    yuv, colour = layout(target.pixel_format).kind == "yuv", facts.colour
    if target.mapped:
        colour = replace(_BT709, full_range=not yuv, matrix=1 if yuv else 0)
    elif colour.matrix == 0 and yuv:
        colour = replace(colour, full_range=False, matrix=1)
    context.color_range = _RANGES[colour.full_range]
    context.color_primaries, context.color_trc, context.colorspace = colour.primaries, colour.transfer, colour.matrix


def rate(facts: Facts) -> Fraction:
    """Frames a second, as encoders plan with it: SVT-AV1 plans with 240 at most."""
    return min(Fraction(*facts.rate), Fraction(240)) if all(facts.rate) else Fraction(25)


def options(name: str, spec: Spec) -> dict[str, str]:
    """Of the encoder `name`."""
    if name == LOSSLESS:
        return {"level": "3", "slices": "4", "g": "1"}
    preset = _PRESETS[name][SPEEDS.index(spec.means.speed)]
    factor = str(rate_factor(name, spec.quality))
    gap = str(max(1, round(rate(spec.facts) * GAP)))
    match name:
        case "libx264":
            fields = {FIELDS[spec.field_order]: "1"} if spec.field_order in FIELDS else {}
            light = _only(spec.light.x26x(), "mastering-display", "cll")
            own = {"open-gop": "0", "sps-id": str(spec.number), **fields, **light, **_repeatable()}
            return {"preset": preset, "crf": factor, "g": gap, "forced-idr": "1", "x264-params": _joined(own)}
        case "libx265":
            own = {"open-gop": "0", "log-level": "none", **_only(spec.light.x26x(), "master-display", "max-cll")}
            return {"preset": preset, "crf": factor, "g": gap, "forced-idr": "1", "x265-params": _joined(own)}
        case "libsvtav1":
            own = spec.light.av1()
            return {"preset": preset, "crf": factor, "g": gap, "svtav1-params": _joined(own)}
        case "libvpx-vp9":
            hidden = {"auto-alt-ref": "0"} if spec.target.alpha else {}
            deadline, used = preset.split()
            own = {"deadline": deadline, "cpu-used": used, "row-mt": "1", "tile-columns": "2", **hidden}
            return {"crf": factor, "b": "0", "g": gap, **own}
        case _:
            return {"preset": preset, "rc": "vbr", "cq": factor, "b": "0", "g": gap, "forced-idr": "1", "bf": "2"}


@cache
def _repeatable() -> dict[str, str]:
    """Instructions with which x264 writes the same frames alike each time.

    Its macroblock tree reads memory that nobody wrote where it uses AVX-512 (seen in core 165: other bytes for every
    MALLOC_PERTURB_), so that a segment that is done again would not be the same one.
    """
    with suppress(OSError):
        flags = set(_CPU.read_text(encoding="utf-8").partition("\nflags")[2].partition("\n")[0].split())
        if flags >= _WIDE:
            return {"asm": "avx2,fma3,bmi2"}
    return {}


def _pixels(name: str, pixel_format: str) -> str:
    """The encoder's own arrangement of the same samples."""
    if name in NVENC.values():
        return {"yuv420p10le": "p010le"}.get(pixel_format, pixel_format)
    if name == LOSSLESS:
        return {"gbrp": "bgr0", "gbrap": "bgra"}.get(pixel_format, pixel_format)
    return pixel_format


def _only(found: dict[str, str], *names: str) -> dict[str, str]:
    return {name: found[name] for name in names if name in found}


def _joined(found: dict[str, str]) -> str:
    return ":".join(f"{name}={value}" for name, value in found.items())
