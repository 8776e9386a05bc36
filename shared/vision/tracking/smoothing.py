"""Meshes made steady over time without lag: averaged along the motion that the pixels show, forwards and backwards.

In coordinates that move with the face a mesh only trembles, turns slowly and changes its expression. There it is
smoothed by local lines under a long Gaussian window, and under a short one, or not at all, where what moves is more
than noise: a blink stays a blink. Knows numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, similarity
from shared.vision.protocols import Floats

_LONG, _SHORT = 5.0, 1.0
"""Frames: standard deviations of the windows."""
_REACH = 3.0
"""Of a window, in its deviations."""
_NOISE = (0.0003, 0.003)
"""Of the face's size: least and most that is taken for noise. Measured on stills: 0.0006, with strong grain 0.0012."""
_MOVES = (2.0, 4.0)
"""Times the noise by which an average must differ from a finer one to be none: from where, and from where wholly."""
_BLOCK = 256
"""Frames that are smoothed in one product: memory does not grow with the square of the clip."""
_RUN, _BESIDE = 512, 32
"""Frames that are smoothed at once, and those on either side that count for them."""
_POINTS = 39
"""Of a mesh, that are smoothed at once: it takes a dozen numbers of double length for each of their coordinates."""


def runs(
    count: int, meshes: Callable[[int, int], Floats], ways: Sequence[Doubles | None]
) -> Iterator[tuple[int, Floats]]:
    """The first frame and the smoothed meshes [frames, 468, 3] of each run, in pixels.

    meshes: gives those from one frame to another, without gaps; they need not be there at once. ways: [3, 3] each, the
    pixels' motion since the frame before; where they did not tell, the meshes' own motion stands in.
    """
    for start in range(0, count, _RUN):
        low, stop = max(0, start - _BESIDE), min(count, start + _RUN)
        high = min(count, stop + _BESIDE)
        yield start, _smoothed(meshes(low, high), ways[low:high])[start - low : stop - low]


def _smoothed(meshes: Floats, ways: Sequence[Doubles | None]) -> Floats:
    if len(meshes) < 3:
        return meshes
    chain = _chain(meshes, ways)
    size = float(np.ptp(meshes[:, :, :2], axis=1).max(1).mean())
    scale = np.hypot(chain[:, 0, 0], chain[:, 1, 0])
    back, noise = np.asarray(np.linalg.inv(chain), np.float64), np.array(_NOISE) * size / float(scale.mean())
    result = np.empty_like(meshes)
    for first in range(0, meshes.shape[1], _POINTS):
        part = slice(first, first + _POINTS)
        still = _through(meshes[:, part].astype(np.float64), back, 1 / scale)
        result[:, part] = _through(_adaptive(still, noise), chain, scale)
    return result


def average(values: Doubles, deviation: float) -> Doubles:
    """[frames, ...] by local lines under a Gaussian window: no lag, and nothing bent at the ends."""
    count = len(values)
    flat = values.reshape(count, -1)
    result = np.empty_like(flat)
    reach = int(np.ceil(_REACH * deviation))
    for start in range(0, count, _BLOCK):
        stop = min(count, start + _BLOCK)
        low, high = max(0, start - reach), min(count, stop + reach)
        result[start:stop] = _lines(np.arange(start, stop), np.arange(low, high), deviation) @ flat[low:high]
    return result.reshape(values.shape)


def _lines(at: NDArray[np.int_], of: NDArray[np.int_], deviation: float) -> Doubles:
    """[at, of]: weights of the values `of` in the local line at `at`."""
    away = (of[None] - at[:, None]).astype(np.float64)
    w = np.exp(-0.5 * (away / deviation) ** 2) * (np.abs(away) <= np.ceil(_REACH * deviation))
    s0, s1, s2 = w.sum(1), (w * away).sum(1), (w * away**2).sum(1)
    return np.asarray(w * (s2[:, None] - s1[:, None] * away) / (s0 * s2 - s1**2)[:, None], np.float64)


def _chain(meshes: Floats, ways: Sequence[Doubles | None]) -> Doubles:
    """[frames, 3, 3]: from the coordinates of the first frame to those of each."""
    chain = [np.eye(3)]
    for index in range(1, len(meshes)):
        way = ways[index]
        if way is None:
            way = np.vstack([similarity(meshes[index - 1, :, :2], meshes[index, :, :2]), [0, 0, 1]])
        chain.append(way @ chain[-1])
    return np.stack(chain)


def _through(meshes: Doubles, maps: Doubles, scale: Doubles) -> Doubles:
    """Each mesh through its similarity [3, 3]; depth by its scale."""
    flat = meshes[..., :2] @ maps[:, :2, :2].transpose(0, 2, 1) + maps[:, None, :2, 2]
    return np.concatenate([flat, meshes[..., 2:] * scale[:, None, None]], -1)


def _adaptive(values: Doubles, noise: Doubles) -> Doubles:
    """[frames, points, 3]; `noise`: least and most."""
    bends = np.linalg.norm(np.diff(values[..., :2], 2, axis=0), axis=-1)
    # the second difference of white noise in two dimensions has a median length of 1.18 * sqrt(6) deviations
    deviation = np.clip(np.median(bends, axis=0) / 2.884, *noise)
    long, short = average(values, _LONG), average(values, _SHORT)
    steady = long + _share(short - long, deviation) * (short - long)
    return np.asarray(steady + _share(values - short, deviation) * (values - short), np.float64)


def _share(difference: Doubles, deviation: Doubles) -> Doubles:
    """[frames, points, 1], 0..1: how surely a difference is motion and not noise. Neighbours in time agree."""
    size = average(np.linalg.norm(difference[..., :2], axis=-1), 1.0) / deviation
    t = np.clip((size - _MOVES[0]) / (_MOVES[1] - _MOVES[0]), 0, 1)
    return np.asarray((t * t * (3 - 2 * t))[..., None], np.float64)
