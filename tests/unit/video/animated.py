"""An animation as Pillow shows it, which is not what the product reads or writes it with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def shown(path: Path) -> tuple[list[int], list[NDArray[np.uint8]], int]:
    """Milliseconds and RGBA of each frame, and how often it is played (0: for ever)."""
    with Image.open(path) as image:
        durations, pictures = [], []
        for number in range(image.n_frames):
            image.seek(number)
            image.load()
            durations.append(round(image.info["duration"]))
            pictures.append(np.asarray(image.convert("RGBA"), np.uint8))
        return durations, pictures, image.info.get("loop", 1)
