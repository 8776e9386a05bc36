"""What can lie over a face, or fall on it, drawn onto a picture: glasses, a hand, hard light."""

from __future__ import annotations

import cv2
import numpy as np

from shared.vision.canonical import EYE_A, EYE_B, LIPS_OUTER
from shared.vision.protocols import Floats, Image
from shared.vision.swapper.filters import Bools

_TEMPLES = (234, 454)
_CHEEK = [117, 50, 101]
_MOUTH = [13, 14]
_MIDLINE = [168, 4, 1, 152]
_NASION = 168


def eye_distance(mesh: Floats) -> float:
    return float(np.linalg.norm(mesh[263, :2] - mesh[33, :2]))


def frame_mask(image: Image, mesh: Floats) -> Bools:
    """Round lenses, a bridge and two arms."""
    mask = np.zeros(image.shape[:2], np.uint8)
    unit = eye_distance(mesh)
    lenses = [mesh[eye, :2].mean(0) + np.float32([0, 0.03 * unit]) for eye in (EYE_A, EYE_B)]
    along = (lenses[1] - lenses[0]) / np.linalg.norm(lenses[1] - lenses[0])
    width, half = max(2, round(0.035 * unit)), 0.25 * unit
    for centre in lenses:
        turn = float(np.degrees(np.arctan2(along[1], along[0])))
        cv2.ellipse(mask, (centre.tolist(), (0.5 * unit, 0.4 * unit), turn), 255, width)
    ends = [
        (lenses[0] + along * half, lenses[1] - along * half),
        (lenses[0] - along * half, mesh[_TEMPLES[0], :2]),
        (lenses[1] + along * half, mesh[_TEMPLES[1], :2]),
    ]
    for start, end in ends:
        cv2.line(mask, start.astype(int).tolist(), end.astype(int).tolist(), 255, width)
    return mask > 0


def with_glasses(image: Image, mesh: Floats) -> Image:
    return _over(image, frame_mask(image, mesh), np.float32([25, 22, 20]), 0.6)


def hand_mask(image: Image, mesh: Floats) -> Bools:
    """A block from cheek to cheek over the mouth."""
    corners = np.float32([[-0.42, -0.22], [0.42, -0.22], [0.42, 0.24], [-0.42, 0.24]])
    mask = np.zeros(image.shape[:2], np.uint8)
    points = mesh[_MOUTH, :2].mean(0) + corners * eye_distance(mesh)
    cv2.fillPoly(mask, [points.round().astype(np.int32)], 255)
    return mask > 0


def with_hand(image: Image, mesh: Floats) -> Image:
    """Of the face's own skin colour, a little striped and grainy."""
    x, y = mesh[_CHEEK, :2].mean(0).round().astype(int)
    skin = image[y - 4 : y + 4, x - 4 : x + 4].reshape(-1, 3).mean(0)
    rows = np.arange(image.shape[0])[:, None, None] / (np.ptp(mesh[:, 1]) * 0.03)
    noise = np.random.default_rng(1).normal(0, 2, image.shape)
    return _over(image, hand_mask(image, mesh), skin * (1 + 0.06 * np.sin(rows)) + noise, 1.0)


def with_side_light(image: Image, mesh: Floats, dark: float) -> Image:
    """Soft light from the viewer's right; `dark` times as much on the other side."""
    low, width = mesh[:, 0].min(), np.ptp(mesh[:, 0])
    t = np.clip((np.arange(image.shape[1]) - low) / width, 0, 1)
    ramp = dark + (1.2 - dark) * t * t * (3 - 2 * t)
    return np.clip(image * ramp[None, :, None], 0, 255).astype(np.uint8)


def with_shadows(image: Image, mesh: Floats) -> Image:
    """The shade of bars: hard dark stripes down the face."""
    phase = (np.arange(image.shape[1]) - mesh[:, 0].min()) / np.ptp(mesh[:, 0])
    stripes = np.where(np.sin(phase * 2 * np.pi * 2) > 0, 1.0, 0.4)
    return np.clip(image * stripes[None, :, None], 0, 255).astype(np.uint8)


def with_shaded_side(image: Image, mesh: Floats) -> Image:
    """Hard light from the viewer's right: the other half of the face has a quarter of it."""
    middle, width = mesh[_MIDLINE, 0].mean(), np.ptp(mesh[:, 0])
    lit = np.clip((np.arange(image.shape[1]) - middle) / (0.05 * width) + 0.5, 0, 1)
    return np.clip(image * (0.25 + 0.75 * lit)[None, :, None], 0, 255).astype(np.uint8)


def with_teeth(image: Image, mesh: Floats) -> Image:
    """Teeth in all of the mouth, as where the mesh sees a laugh too small."""
    return _over(image, lips_mask(image, mesh), np.float32([225, 232, 235]), 0.6)


def lips_mask(image: Image, mesh: Floats) -> Bools:
    mask = np.zeros(image.shape[:2], np.uint8)
    cv2.fillPoly(mask, [mesh[LIPS_OUTER, :2].round().astype(np.int32)], 255)
    return mask > 0


def with_frown(image: Image, mesh: Floats) -> Image:
    """Two upright creases between the brows and a broad shade under them."""
    unit, mask = eye_distance(mesh), np.zeros(image.shape[:2], np.uint8)
    x, y = mesh[_NASION, :2]
    for side in (-0.05, 0.05):
        ends = ([x + side * unit, y - 0.25 * unit], [x + side * unit, y - 0.02 * unit])
        cv2.line(mask, *(np.int32(end).tolist() for end in ends), 255, max(1, round(0.02 * unit)))  # type: ignore[misc]
    creased = _over(image, mask > 0, np.float32([40, 45, 60]), 0.6)
    rows = (np.arange(image.shape[0]) - y + 0.1 * unit) / (0.12 * unit)
    columns = (np.arange(image.shape[1]) - x) / (0.3 * unit)
    shade = 1 - 0.3 * np.exp(-(rows[:, None] ** 2) - columns[None] ** 2)
    return np.clip(creased * shade[..., None], 0, 255).astype(np.uint8)


def _over(image: Image, mask: Bools, colour: Floats, soft: float) -> Image:
    alpha = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), soft)[..., None]
    return np.clip(image * (1 - alpha) + colour * alpha, 0, 255).astype(np.uint8)
