"""Every option, at its bounds and beyond."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidOptionError, JsonValue
from shared.events.choices import Options, Pairing
from shared.jobs import options

GOOD: list[tuple[str, JsonValue, object]] = [
    ("swapper", "inswapper_128", "inswapper_128"),
    ("faces", "one", "one"),
    ("faces", 0, "0"),
    ("faces", "12", "12"),
    ("faces", "reference", "reference"),
    ("order", "size", "size"),
    ("mapping", [], ()),
    ("mapping", [{"source": 1, "target": 0}, {"source": 1, "target": 7}], (Pairing(1, 0), Pairing(1, 7))),
    ("mapping", [{"source": 0, "target": n} for n in range(64)], tuple(Pairing(0, n) for n in range(64))),
    ("similarity", 0, 0.0),
    ("similarity", 1, 1.0),
    ("min_score", 0.2, 0.2),
    ("min_score", 1, 1.0),
    ("boost", 0, 0),
    ("boost", 256, 256),
    ("boost", 384, 384),
    ("boost", 1024, 1024),
    ("masks", [], ()),
    ("masks", ["region", "box", "occlusion"], ("region", "box", "occlusion")),
    ("mask_blur", 0, 0.0),
    ("mask_blur", 1, 1.0),
    ("mask_padding", [0, 0.1, 0.45, 0], (0.0, 0.1, 0.45, 0.0)),
    ("colour_match", True, True),
    ("client", "mobile", "mobile"),
    ("source_face", "largest", "largest"),
    ("source_face", 3, "3"),
    ("eyes", "source", "source"),
    ("shape", 0, 0.0),
    ("shape", 1.0, 1.0),
    ("enhancer", "gfpgan_1.4", "gfpgan_1.4"),
    ("enhancer", "", ""),
    ("enhance_blend", 0, 0.0),
    ("enhance_blend", 1, 1.0),
    ("upscaler", "real_esrgan_x2", "real_esrgan_x2"),
    ("unsuited_source", "warn", "warn"),
    ("unsuited_source", "strict", "strict"),
    ("min_face", 18, 18),
    ("min_face", 4096, 4096),
    ("format", "avif", "avif"),
    ("format", "webm", "webm"),
    ("codec", "av1", "av1"),
    ("damaged", "finish", "finish"),
    ("quality", 1, 1),
    ("quality", 100, 100),
]
BAD: list[tuple[str, JsonValue]] = [
    ("swapper", "../mesh"),
    ("swapper", ""),
    ("swapper", 1),
    ("faces", "largest"),
    ("faces", -1),
    ("faces", 1000),
    ("faces", True),
    ("faces", "1000"),
    ("faces", "٣"),
    ("order", "left"),
    ("order", 0),
    ("mapping", {"source": 0, "target": 0}),
    ("mapping", [{"source": 0}]),
    ("mapping", [{"source": 0, "target": 0, "weight": 1}]),
    ("mapping", [{"source": "0", "target": 0}]),
    ("mapping", [{"source": 0, "target": -1}]),
    ("mapping", [{"source": 0, "target": 1000}]),
    ("mapping", [{"source": True, "target": 0}]),
    ("mapping", [{"source": 0, "target": 1}, {"source": 1, "target": 1}]),
    ("mapping", [{"source": 0, "target": n} for n in range(65)]),
    ("mapping", [[0, 0]]),
    ("similarity", -0.01),
    ("similarity", 1.01),
    ("similarity", True),
    ("min_score", 0.19),
    ("min_score", 1.01),
    ("boost", 128),
    ("boost", 300),
    ("boost", 1152),
    ("boost", 256.0),
    ("boost", False),
    ("masks", "box"),
    ("masks", ["hair"]),
    ("masks", ["box", "box"]),
    ("masks", [["box"]]),
    ("mask_blur", -0.01),
    ("mask_blur", 1.01),
    ("mask_padding", 0.1),
    ("mask_padding", [0, 0, 0]),
    ("mask_padding", [0, 0, 0, 0.46]),
    ("mask_padding", [0, 0, 0, -0.1]),
    ("mask_padding", [0, 0, 0, "0"]),
    ("colour_match", 1),
    ("client", "tv"),
    ("source_face", "many"),
    ("source_face", None),
    ("eyes", "both"),
    ("shape", -0.01),
    ("shape", 1.01),
    ("shape", "0.5"),
    ("shape", float("nan")),
    ("enhancer", "gfpgan 1.4"),
    ("enhancer", None),
    ("enhance_blend", 1.01),
    ("enhance_blend", "0.8"),
    ("upscaler", 2),
    ("unsuited_source", "ask"),
    ("unsuited_source", True),
    ("codec", "divx"),
    ("codec", 264),
    ("damaged", "ignore"),
    ("damaged", True),
    ("min_face", 17),
    ("min_face", 4097),
    ("min_face", 20.0),
    ("format", "heic"),
    ("format", ["jpeg"]),
    ("quality", 0),
    ("quality", 101),
    ("quality", True),
]


def test_defaults() -> None:
    assert options.parse({}) == Options()


@pytest.mark.parametrize(("name", "value", "kept"), GOOD)
def test_allowed(name: str, value: JsonValue, kept: object) -> None:
    found = getattr(options.parse({name: value}), name)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize(("name", "value"), BAD)
def test_refused_by_name(name: str, value: JsonValue) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.parse({name: value})
    assert caught.value.context == {"field": name}


def test_every_field_has_a_good_and_a_bad_case() -> None:
    names = {entry.name for entry in fields(Options)}
    assert names == {name for name, *_ in GOOD} == {name for name, _ in BAD}


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_options_are_an_object(value: JsonValue) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.parse(value)
    assert caught.value.context == {"field": "options"}


def test_unknown_option() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.parse({"qualty": 1})
    assert caught.value.context == {"field": "qualty"}


PAIRS: JsonValue = [{"source": 1, "target": 0}]


@pytest.mark.parametrize("faces", ["one", "reference", "0"])
def test_a_mapping_names_its_targets_itself(faces: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.parse({"mapping": PAIRS, "faces": faces})
    assert caught.value.context == {"field": "mapping"}
    assert options.parse({"mapping": PAIRS, "faces": "many"}).mapping == (Pairing(1, 0),)


@pytest.mark.parametrize(
    ("chosen", "sources", "reference", "field"),
    [
        ({"mapping": PAIRS}, 1, False, "mapping"),
        ({"faces": "reference"}, 1, False, "faces"),
        ({"faces": "one"}, 1, True, "reference"),
        ({}, 1, True, "reference"),
    ],
)
def test_options_that_do_not_go_with_the_pictures(chosen: JsonValue, sources: int, reference: bool, field: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.fit(options.parse(chosen), sources=sources, reference=reference)
    assert caught.value.context == {"field": field}


def test_options_that_go_with_the_pictures() -> None:
    for chosen, sources, reference in (
        ({"mapping": PAIRS}, 2, False),
        ({"faces": "reference"}, 1, True),
        ({}, 8, False),
    ):
        asked = options.parse(chosen)  # type: ignore[arg-type]
        assert options.fit(asked, sources=sources, reference=reference) is asked


@given(st.sampled_from([entry.name for entry in fields(Options)]), st.integers() | st.floats() | st.text() | st.none())
def test_nothing_but_our_own_error(name: str, value: JsonValue) -> None:
    with suppress(InvalidOptionError):
        assert isinstance(options.parse({name: value}), Options)
