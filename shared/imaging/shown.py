"""What people may see of a picture with alpha: its colours alone, and what they are over a white and a black page.

Whoever draws with alpha alone has colours that show nothing, and whoever hides something under it shows it to all
that drop alpha, so no one of the three tells what a picture is. Knows numpy and how pictures are put on a page.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shared.imaging.codec import Plane
from shared.imaging.writers import flatten

WHITE, BLACK = 255, 0
_ROWS = 256
"""At a time: nothing but the view itself has a picture's size."""


def views(pixels: Plane, alpha: Plane | None) -> Iterator[Plane]:
    """The pictures [h, w, 3] that `pixels` [h, w, 3] with `alpha` [h, w] may be seen as; one where all is opaque.

    None of them shares memory with another but the first, which is `pixels`; in the order colours, white, black.
    """
    yield pixels
    if alpha is not None and int(alpha.min()) < 255:
        yield _over(pixels, alpha, WHITE)
        yield _over(pixels, alpha, BLACK)


def _over(pixels: Plane, alpha: Plane, page: int) -> Plane:
    shown = np.empty_like(pixels)
    for top in range(0, len(pixels), _ROWS):
        rows = slice(top, top + _ROWS)
        shown[rows] = flatten(pixels[rows], alpha[rows], page)
    return shown
