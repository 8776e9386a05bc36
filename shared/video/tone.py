"""High dynamic range as an ordinary picture, and the way back: what detectors and swappers see of PQ and HLG.

A signal (0..1, red, green and blue of BT.2020) becomes light relative to reference white (203 cd/m2 of PQ, 75 % of HLG:
ITU-R BT.2408), the light of BT.709 by a matrix (BT.2087), held to 0..1 by a curve that leaves everything up to 0.6 of
white as it is and bends what is above (extended Reinhard; the brightest is 1000 cd/m2, or all of HLG), and is written
with a power of 1/2.2. Every step but the cuts at the ends has an inverse. Knows numpy and OpenCV.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float32]

PQ, HLG = 16, 18
"""Transfer characteristics of ITU-T H.273."""
_KNEE, _GAMMA, _ENTRIES = 0.6, 2.2, 4096
_M1, _M2 = 2610 / 16384, 2523 / 4096 * 128
_C1, _C2, _C3 = 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32
"""SMPTE ST 2084."""
_A = 0.17883277
_B, _C = 1 - 4 * _A, 0.5 - _A * np.log(4 * _A)
"""Rec. ITU-R BT.2100, table 5."""
_WHITE_PQ, _PEAK_PQ = 203 / 10000, 1000 / 203
_WHITE_HLG = (np.exp((0.75 - _C) / _A) + _B) / 12
_NARROWER = np.array([[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]])
"""Red, green and blue of BT.2020 to those of BT.709 (BT.2087, annex)."""
_MATRIX = np.ascontiguousarray(_NARROWER[::-1, ::-1])
_INVERSE = np.linalg.inv(_MATRIX)


def is_hdr(transfer: int) -> bool:
    return transfer in (PQ, HLG)


def shown(signal: NDArray[np.uint16], transfer: int) -> NDArray[np.uint8]:
    """Blue, green and red [h, w, 3] with white at 4095, as an ordinary picture, uint8."""
    light = np.asarray(cv2.transform(_light_table(transfer)[np.minimum(signal, _ENTRIES - 1)], _MATRIX))
    index = np.sqrt(np.clip(light / _peak(transfer), 0, 1)) * (_ENTRIES - 1)  # fine steps where it is dark
    return cast("NDArray[np.uint8]", _picture_table(transfer)[(index + 0.5).astype(np.uint16)])


def signal(picture: NDArray[np.uint8], transfer: int) -> Reals:
    """The way back of `shown`: blue, green and red 0..1, float32."""
    light = cv2.transform(_back_table(transfer)[picture], _INVERSE)
    return _encode(np.maximum(light, 0).astype(np.float32, copy=False), transfer)


def _peak(transfer: int) -> float:
    return _PEAK_PQ if transfer == PQ else float(1 / _WHITE_HLG)


@cache
def _light_table(transfer: int) -> Reals:
    e = np.linspace(0, 1, _ENTRIES)
    if transfer == PQ:
        root = e ** (1 / _M2)
        light = (np.maximum(root - _C1, 0) / (_C2 - _C3 * root)) ** (1 / _M1) / _WHITE_PQ
    else:
        light = np.where(e <= 0.5, e**2 / 3, (np.exp((e - _C) / _A) + _B) / 12) / _WHITE_HLG
    return light.astype(np.float32)


def _encode(light: Reals, transfer: int) -> Reals:
    if transfer == PQ:
        power = (light * np.float32(_WHITE_PQ)) ** np.float32(_M1)
        return cast("Reals", ((_C1 + _C2 * power) / (1 + _C3 * power)) ** np.float32(_M2))
    scene = light * np.float32(_WHITE_HLG)
    low = np.sqrt(3 * np.minimum(scene, 1 / 12))
    high = _A * np.log(12 * np.maximum(scene, 1 / 12) - np.float32(_B)) + np.float32(_C)
    return cast("Reals", np.where(scene <= 1 / 12, low, high).astype(np.float32, copy=False))


@cache
def _picture_table(transfer: int) -> NDArray[np.uint8]:
    light = np.linspace(0, 1, _ENTRIES) ** 2 * _peak(transfer)
    over = np.maximum(light - _KNEE, 0) / (1 - _KNEE)
    most = (_peak(transfer) - _KNEE) / (1 - _KNEE)
    held = np.minimum(light, _KNEE) + (1 - _KNEE) * over * (1 + over / most**2) / (1 + over)
    return np.rint(255 * np.clip(held, 0, 1) ** (1 / _GAMMA)).astype(np.uint8)


@cache
def _back_table(transfer: int) -> Reals:
    """Light of each of the 256 levels of the picture."""
    held = (np.arange(256) / 255) ** _GAMMA
    most = (_peak(transfer) - _KNEE) / (1 - _KNEE)
    over = np.maximum(held - _KNEE, 0) / (1 - _KNEE)
    # over = u (1 + u / most^2) / (1 + u), solved for u
    b = (1 - over) * most**2
    u = (-b + np.sqrt(b**2 + 4 * over * most**2)) / 2
    return (np.minimum(held, _KNEE) + (1 - _KNEE) * u).astype(np.float32)
