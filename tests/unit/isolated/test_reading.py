"""HEIC, AVIF and TIFF apart from this process: the same pictures, the same refusals, and nothing read here."""

from __future__ import annotations

import ast
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shared.errors import RejectedError
from shared.imaging import codec
from shared.imaging import probe as here
from shared.imaging.probe import Limits
from shared.imaging.sniff import sniff
from shared.isolated import decode as apart
from shared.isolated import headers
from shared.isolated.headers import APART
from shared.rejections import ImageTooLargeError
from tests.unit.imaging.samples import CASES, LIMITS
from tests.unit.imaging.test_fuzz import SAMPLES, mutant

ROOT = Path(__file__).parents[3]
READERS = {
    "shared.imaging": {"codec", "probe", "unpack"},
    "shared.imaging.codec": {"decode"},
    "shared.imaging.probe": {"probe", "open_picture"},
    "shared.imaging.unpack": {"unpack", "base_and_alpha"},
}
"""What reads bytes, by the module to import it from."""
HELD = [name for name, data in SAMPLES.items() if sniff(data) in APART]


def outcome(work: Callable[[], object]) -> object:
    try:
        return work()
    except RejectedError as error:
        return type(error), error.detail, error.context


def same(data: bytes, limits: Limits = LIMITS) -> bool:
    """Whether both ways end alike; True for a picture, False for a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # here they are errors, and so refusals; in the product they are not
        return _same(data, limits)


def _same(data: bytes, limits: Limits) -> bool:
    assert outcome(lambda: headers.probe(data, limits)) == outcome(lambda: here.probe(data, limits))
    ours, theirs = outcome(lambda: apart.decode(data, limits)), outcome(lambda: codec.decode(data, limits))
    if not isinstance(ours, codec.Picture) or not isinstance(theirs, codec.Picture):
        assert ours == theirs
        return False
    assert np.array_equal(ours.pixels, theirs.pixels)
    if ours.alpha is None or theirs.alpha is None:
        assert ours.alpha is theirs.alpha
    else:
        assert np.array_equal(ours.alpha, theirs.alpha)
    assert ours.format == theirs.format
    assert ours.pixels.flags.writeable
    return True


def test_which_formats_are_held_apart() -> None:
    assert {name.split()[0] for name in HELD} == {"heic", "avif", "tiff"}


@pytest.mark.parametrize("name", SAMPLES)
def test_same_picture_as_in_this_process(name: str) -> None:
    assert same(SAMPLES[name])


@pytest.mark.parametrize("name", HELD)
def test_same_refusal_as_in_this_process(name: str) -> None:
    data, chance = SAMPLES[name], random.Random(7)
    assert not same(data[: len(data) // 2])
    for _ in range(8):
        same(mutant(data, chance))


@pytest.mark.parametrize("name", HELD)
def test_img_09_pixels_are_counted_before_any_is_unpacked(name: str) -> None:
    small = Limits(max_pixels=1000)
    for read in (headers.probe, apart.decode):
        with pytest.raises(ImageTooLargeError) as caught:
            read(SAMPLES[name], small)
        assert caught.value.context["max_pixels"] == 1000
    assert not same(SAMPLES[name], small)


def test_every_case_file_ends_as_before() -> None:
    for path in sorted(CASES.iterdir()):
        same(path.read_bytes(), Limits())


def test_bytes_from_outside_are_read_nowhere_else() -> None:
    """Only here may the product call the readers themselves: a stage that did would have them in its own process."""
    for path in [*ROOT.glob("shared/**/*.py"), *ROOT.glob("functions/**/*.py"), *ROOT.glob("infra/**/*.py")]:
        if path.parent.name in ("imaging", "isolated"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                named = {alias.name for alias in node.names}
                assert not named & READERS.get(node.module or "", set()), path
