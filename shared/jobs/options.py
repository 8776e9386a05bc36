"""Options as a caller writes them: every field checked, no field unknown.

Pure. Knows the payloads, the tenant's policy and the error tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import NoReturn, TypeAlias, cast

from shared.errors import InvalidOptionError, JsonValue
from shared.events.choices import Options, Pairing
from shared.rejections import UnusableOptionError
from shared.tenancy import permits
from shared.tenancy.tenant import Policy
from shared.video import choosing

FORMATS = ("same", "jpeg", "png", "webp", "avif", "tiff", "bmp", "gif", "mp4", "mov", "mkv", "webm")
CODECS = ("same", "h264", "h265", "av1", "vp9")
MASKS = ("box", "occlusion", "region")
MAX_INDEX = 999
"""Largest face index; no picture in the size limits holds more faces of 18 pixels that anyone could count."""
MAX_PAIRS = 64
_SIDES = 4
_CATALOGUE_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")

Check: TypeAlias = Callable[[str, JsonValue], object]
"""The option's name and its value as written -> the value as kept. Raises InvalidOptionError."""


def parse(value: JsonValue) -> Options:
    """Options from a JSON object; what is left out keeps its default.

    Raises InvalidOptionError whose `context["field"]` is the field's name (`options` when it is no object at all).
    """
    if not isinstance(value, dict):
        _refuse("options", "Options are a JSON object.")
    if unknown := sorted(set(value) - {entry.name for entry in fields(Options)}):
        _refuse(unknown[0][:64], "There is no such option.")
    options = Options(**{name: CHECKS[name](name, entry) for name, entry in value.items()})  # type: ignore[arg-type]
    if options.mapping and options.faces != "many":
        _refuse("mapping", "It names the target faces itself: leave out `faces`.")
    return options


def fit(options: Options, *, sources: int, reference: bool) -> Options:
    """The same options, once it is known that they go with the job's pictures.

    `sources`: their number; `reference`: whether there is such a picture. Raises InvalidOptionError as `parse` does.
    """
    if any(pair.source >= sources for pair in options.mapping):
        _refuse("mapping", f"The job has {sources} sources, counted from 0.")
    if options.faces == "reference" and not reference:
        _refuse("faces", "Send a picture of the person as `reference`.")
    if reference and options.faces != "reference":
        _refuse("reference", "It is used with the option `faces`: `reference` only.")
    return options


def permit(options: Options, policy: Policy) -> Options:
    """The same options, once it is known that the tenant may ask for them. Raises NotAllowedError."""
    permits.check(policy, swapper=options.swapper, enhancer=options.enhancer, upscaler=options.upscaler)
    return options


def suit(options: Options, container: str = "") -> Options:
    """The same options, once it is known that they suit a target that is a video in `container`, or a picture (empty).

    Raises UnusableOptionError whose `context["field"]` is the option's name.
    """
    if not container:
        if options.format in choosing.CODECS:
            _unusable("format", "A picture is not written as a video.")
        if options.codec != "same":
            _unusable("codec", "A picture has none to choose.")
        return options
    if options.upscaler:
        _unusable("upscaler", "Videos are not enlarged.")
    if options.format not in ("same", *choosing.CODECS, *choosing.ANIMATIONS):
        _unusable("format", "A video is not written as a still picture.")
    place = container if options.format == "same" else options.format
    if options.codec not in ("same", *choosing.CODECS.get(place, ())):
        _unusable("codec", f"It is not written in {place}.")
    return options


def _unusable(name: str, detail: str) -> NoReturn:
    raise UnusableOptionError(detail, context={"field": name})


def _choice(*allowed: str) -> Check:
    def check(name: str, value: JsonValue) -> str:
        if not isinstance(value, str) or value not in allowed:
            _refuse(name, f"Must be one of {', '.join(allowed)}.")
        return value

    return check


def _index_or(*words: str) -> Check:
    def check(name: str, value: JsonValue) -> str:
        if isinstance(value, str) and value in words:
            return value
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,3}", value):
            return str(int(value))
        if isinstance(value, str) or not _is_whole(value, 0, MAX_INDEX):
            _refuse(name, f"Must be one of {', '.join(words)} or an index from 0 to {MAX_INDEX}.")
        return str(value)

    return check


def _model(*, optional: bool) -> Check:
    def check(name: str, value: JsonValue) -> str:
        if not isinstance(value, str) or not (_CATALOGUE_NAME.fullmatch(value) or (optional and not value)):
            _refuse(name, "Must be a model's name in the catalogue" + (", or empty." if optional else "."))
        return value

    return check


def _whole(low: int, high: int) -> Check:
    def check(name: str, value: JsonValue) -> int:
        if not _is_whole(value, low, high):
            _refuse(name, f"Must be a whole number from {low} to {high}.")
        return cast(int, value)

    return check


def _real(low: float, high: float) -> Check:
    def check(name: str, value: JsonValue) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            _refuse(name, f"Must be a number from {low:g} to {high:g}.")
        return float(value)

    return check


def _boost(name: str, value: JsonValue) -> int:
    if not (_is_whole(value, 0, 0) or (_is_whole(value, 256, 1024) and cast(int, value) % 128 == 0)):
        _refuse(name, "Must be 0, or from 256 to 1024 in steps of 128.")
    return cast(int, value)


def _flag(name: str, value: JsonValue) -> bool:
    if not isinstance(value, bool):
        _refuse(name, "Must be true or false.")
    return value


def _masks(name: str, value: JsonValue) -> tuple[str, ...]:
    if (
        not isinstance(value, list)
        or any(entry not in MASKS for entry in value)
        or len(value) > len(set(map(str, value)))
    ):
        _refuse(name, f"Must be a list of {', '.join(MASKS)}, each at most once.")
    return tuple(str(entry) for entry in value)


def _padding(name: str, value: JsonValue) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != _SIDES:
        _refuse(name, "Must be a list of four numbers: top, right, bottom, left.")
    part = _real(0, 0.45)
    return tuple(cast(float, part(name, entry)) for entry in value)


def _mapping(name: str, value: JsonValue) -> tuple[Pairing, ...]:
    if not isinstance(value, list) or len(value) > MAX_PAIRS:
        _refuse(name, f"Must be a list of at most {MAX_PAIRS} pairs.")
    pairs = tuple(_pair(name, entry) for entry in value)
    if len({pair.target for pair in pairs}) < len(pairs):
        _refuse(name, "A target face stands twice.")
    return pairs


def _pair(name: str, value: JsonValue) -> Pairing:
    if not isinstance(value, dict) or set(value) != {"source", "target"}:
        _refuse(name, 'Each entry must read {"source": index, "target": index}.')
    index = _whole(0, MAX_INDEX)
    return Pairing(**{key: cast(int, index(name, entry)) for key, entry in value.items()})


def _is_whole(value: JsonValue, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _refuse(name: str, detail: str) -> NoReturn:
    raise InvalidOptionError(detail, context={"field": name})


CHECKS: Mapping[str, Check] = {
    "swapper": _model(optional=False),
    "faces": _index_or("many", "one", "reference"),
    "order": _choice("position", "size", "score"),
    "mapping": _mapping,
    "similarity": _real(0, 1),
    "source_face": _index_or("one", "largest"),
    "unsuited_source": _choice("refuse", "strict", "warn"),
    "min_face": _whole(18, 4096),
    "min_score": _real(0.2, 1),
    "eyes": _choice("target", "source"),
    "shape": _real(0, 1),
    "boost": _boost,
    "masks": _masks,
    "mask_blur": _real(0, 1),
    "mask_padding": _padding,
    "colour_match": _flag,
    "enhancer": _model(optional=True),
    "enhance_blend": _real(0, 1),
    "upscaler": _model(optional=True),
    "client": _choice("original", "web", "mobile"),
    "format": _choice(*FORMATS),
    "codec": _choice(*CODECS),
    "damaged": _choice("refuse", "finish"),
    "quality": _whole(1, 100),
}
