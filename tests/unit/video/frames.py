"""Facts and frames made of nothing."""

from __future__ import annotations

import numpy as np

from shared.video.facts import Colour, Facts
from shared.video.formats import layout
from shared.video.frame import Frame


def about(width: int, height: int, pixel_format: str, rotation: int = 0, colour: Colour | None = None) -> Facts:
    return Facts(
        container="mp4",
        codec="h264",
        profile="",
        pixel_format=pixel_format,
        index=0,
        width=width,
        height=height,
        rotation=rotation,
        sample_aspect=(1, 1),
        time_base=(1, 1000),
        start=0,
        end=1000,
        frames=25,
        rate=(25, 1),
        depth=layout(pixel_format).depth,
        alpha=layout(pixel_format).alpha,
        colour=colour or Colour(),
    )


def noise(facts: Facts, seed: int = 1) -> Frame:
    """Every sample by chance, also those that stand for no colour."""
    form, chance = layout(facts.pixel_format), np.random.default_rng(seed)
    kind = np.uint8 if form.bytes == 1 else np.uint16
    shapes = form.shapes(facts.width, facts.height)
    samples = tuple(chance.integers(0, 1 << form.depth, shape).astype(kind) for shape in shapes)
    return Frame(samples, facts.pixel_format, 0, 40, True)
