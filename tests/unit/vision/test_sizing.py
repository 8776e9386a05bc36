"""How large results are: by client and tenant, never enlarged, shape kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.tenancy.tenant import Policy
from shared.vision.sizing import LINES, MOST_ENLARGED, Extent, fitted, result_size

SIDES = st.integers(1, 16_384)


@pytest.mark.parametrize(
    ("size", "lines", "expected"),
    [
        ((3840, 2160), 1080, (1920, 1080)),
        ((2160, 3840), 1080, (1080, 1920)),
        ((3840, 2160), 720, (1280, 720)),
        ((1280, 720), 720, (1280, 720)),
        ((1281, 720), 720, (1280, 719)),
        ((640, 480), 1080, (640, 480)),
        ((4032, 3024), 1080, (1440, 1080)),
        ((3000, 3000), 720, (720, 720)),
        ((8000, 100), 720, (1280, 16)),
        ((8000, 1), 720, (1280, 1)),
        ((4032, 3024), 16_384, (4032, 3024)),
    ],
)
def test_frames(size: tuple[int, int], lines: int, expected: tuple[int, int]) -> None:
    assert fitted(Extent(*size), lines) == expected


@given(SIDES, SIDES, st.integers(1, 4320))
def test_a_fitted_size_fits_and_keeps_its_shape(width: int, height: int, lines: int) -> None:
    size = fitted(Extent(width, height), lines)
    assert min(size) <= max(1, lines)
    assert max(size) <= max(1, round(lines * 16 / 9))
    assert size.width <= width
    assert size.height <= height
    scale = max(size) / max(width, height)
    assert abs(min(size) - min(width, height) * scale) <= 1


@pytest.mark.parametrize(
    ("made", "target", "client", "most", "expected"),
    [
        ((4032, 3024), (4032, 3024), "original", 16_384, (4032, 3024)),
        ((4032, 3024), (4032, 3024), "web", 16_384, (1440, 1080)),
        ((4032, 3024), (4032, 3024), "mobile", 16_384, (960, 720)),
        ((4032, 3024), (4032, 3024), "original", 2160, (2880, 2160)),
        ((4032, 3024), (4032, 3024), "web", 720, (960, 720)),
        ((640, 480), (640, 480), "web", 2160, (640, 480)),
        # enlarged: at most 4K
        ((2560, 1440), (1280, 720), "original", 16_384, (2560, 1440)),
        ((7680, 4320), (1920, 1080), "original", 16_384, (3840, 2160)),
        ((7680, 4320), (1920, 1080), "web", 16_384, (1920, 1080)),
        ((2560, 1440), (1280, 720), "original", 1080, (1920, 1080)),
        # enlarged from more than 4K: as large as it was
        ((8000, 6000), (4000, 3000), "original", 16_384, (4000, 3000)),
    ],
)
def test_results(
    made: tuple[int, int], target: tuple[int, int], client: str, most: int, expected: tuple[int, int]
) -> None:
    assert result_size(Extent(*made), Extent(*target), client, most) == expected


@given(
    SIDES,
    SIDES,
    st.integers(1, 4),
    st.sampled_from(sorted(LINES)),
    st.sampled_from([240, MOST_ENLARGED, Policy().max_output]),
)
def test_nothing_is_enlarged(width: int, height: int, factor: int, client: str, most: int) -> None:
    made = Extent(width * factor, height * factor)
    size = result_size(made, Extent(width, height), client, most)
    assert 1 <= size.width <= made.width
    assert 1 <= size.height <= made.height
    if factor == 1 and client == "original" and most == Policy().max_output:
        assert size == made
