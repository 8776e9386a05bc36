"""Damaged files of every format: whatever the bytes, only errors of our own come out, and soon.

Seeded, so that a failure can be run again. The fast round changes each sample a few times, the slow one often.
"""

from __future__ import annotations

import contextlib
import io
import random
import struct
import sys
import time

import numpy as np
import pillow_heif
import pytest
from PIL import Image

from shared.errors import RejectedError
from shared.imaging.codec import decode
from shared.imaging.probe import probe
from shared.rejections import MediaTruncatedError, UnsupportedMediaTypeError
from tests.unit.imaging import samples
from tests.unit.imaging.samples import CASES, LIMITS, case, chunk, colours, png, saved

IMAGE = Image.fromarray(colours(40, 32))
RGBA = Image.fromarray(np.dstack([colours(40, 32), colours(40, 32)[..., 0]]))
TAGS = {"exif": samples.exif(6), "icc_profile": samples.srgb_profile()}


def heic() -> bytes:
    buffer = io.BytesIO()
    pillow_heif.from_pillow(RGBA).save(buffer)
    return buffer.getvalue()


SAMPLES = {
    "jpeg": saved(IMAGE, "JPEG", **TAGS),
    "jpeg progressive": saved(IMAGE, "JPEG", progressive=True),
    "jpeg cmyk": saved(IMAGE.convert("CMYK"), "JPEG"),
    "mpo": saved(IMAGE, "MPO", save_all=True, append_images=[IMAGE]),
    "png": saved(RGBA, "PNG", **TAGS),
    "png palette": saved(IMAGE.quantize(16), "PNG", transparency=3),
    "png 16": png(colours(40, 32).astype(np.uint16) * 257, 16, 2, before=chunk(b"tRNS", struct.pack(">3H", 9, 9, 9))),
    "gif": saved(IMAGE.quantize(32), "GIF", transparency=3),
    "webp": saved(RGBA, "WEBP", **TAGS),
    "webp lossless": saved(IMAGE, "WEBP", lossless=True),
    "avif": saved(RGBA, "AVIF", **TAGS),
    "heic": heic(),
    "bmp": saved(IMAGE, "BMP"),
    "bmp palette": saved(IMAGE.quantize(16), "BMP"),
    "tiff": saved(IMAGE, "TIFF", **TAGS),
    "tiff lzw": saved(IMAGE, "TIFF", compression="tiff_lzw"),
    "tiff jpeg": saved(IMAGE, "TIFF", compression="jpeg"),
    "tiff fax": saved(IMAGE.convert("1"), "TIFF", compression="group4"),
    "tiff 16": saved(Image.fromarray(np.asarray(IMAGE)[..., 0].astype(np.uint16) * 257), "TIFF"),
    "tiff float": saved(Image.fromarray(np.asarray(IMAGE)[..., 0].astype(np.float32) / 255), "TIFF"),
}


def mutant(data: bytes, chance: random.Random) -> bytes:
    """Cut, shortened in the middle, lengthened in the middle, or with some bytes changed, half the time in the head."""
    changed, at = bytearray(data), chance.randrange(len(data))
    match chance.randrange(8):
        case 0:
            return data[:at]
        case 1:
            del changed[at : at + chance.randrange(1, 40)]
        case 2:
            changed[at:at] = chance.randbytes(chance.randrange(1, 20))
        case _:
            end = len(data) if chance.random() < 0.5 else min(len(data), 200)
            for _ in range(chance.choice((1, 1, 2, 3, 8))):
                changed[chance.randrange(end)] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    return bytes(changed)


def attack(data: bytes, rounds: int) -> int:
    """How many of the mutants were refused. Any exception that is not ours ends the test."""
    chance, refused = random.Random(len(data)), 0
    for _ in range(rounds):
        hostile, start = mutant(data, chance), time.process_time()
        with contextlib.suppress(RejectedError):
            probe(hostile, LIMITS)
        try:
            decode(hostile, LIMITS)
        except RejectedError:
            refused += 1
        assert time.process_time() - start < 3
    return refused


@pytest.mark.parametrize("name", SAMPLES)
def test_mutants_of_every_format(name: str) -> None:
    decode(SAMPLES[name], LIMITS)
    assert attack(SAMPLES[name], 25) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_many_mutants_of_every_format(name: str) -> None:
    assert attack(SAMPLES[name], 600) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*") if path.stat().st_size))
def test_many_mutants_of_the_cases(name: str) -> None:
    attack(case(name), 60)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "mpo"])
def test_every_cut_is_named_as_one(name: str) -> None:
    """From the first third on, at least three of four cuts are called cuts, the others damage."""
    data, cuts, named = SAMPLES[name], 0, 0
    for end in range(len(data) // 3, len(data) - 30, max(1, len(data) // 12)):
        cuts += 1
        try:
            decode(data[:end], LIMITS)
        except MediaTruncatedError:
            named += 1
        except RejectedError:
            pass
    assert named >= cuts * 0.75


def test_a_cut_behind_the_first_picture_of_an_mpo_costs_nothing() -> None:
    whole = SAMPLES["mpo"]
    assert np.array_equal(decode(whole[: len(whole) * 3 // 4], LIMITS).pixels, decode(whole, LIMITS).pixels)


def test_a_format_whose_reader_is_not_installed_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(UnsupportedMediaTypeError, match="heic"):
        probe(SAMPLES["heic"], LIMITS)
