"""Bars over time as a PNG: one panel a variant, one row a process. Knows Pillow and nothing of what is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

COLOURS = {"wait": "#c9ced6", "init": "#e0a33e", "start": "#4a7fc1", "work": "#4aa56a"}
LEGEND = {"wait": "caller waits", "init": "init step", "start": "process start to ready", "work": "work"}
LEFT, RIGHT, TOP, ROW, GAP, WIDTH = 110, 30, 50, 26, 44, 1200


@dataclass(frozen=True)
class Bar:
    kind: str
    begins: float
    """Seconds."""
    ends: float


@dataclass(frozen=True)
class Row:
    name: str
    bars: Sequence[Bar]


def draw(path: Path, panels: Mapping[str, Sequence[Row]]) -> None:
    """Write the panels below each other, all to the same scale of seconds."""
    longest = max(bar.ends for rows in panels.values() for row in rows for bar in row.bars)
    height = TOP + sum(len(rows) * ROW + GAP + 20 for rows in panels.values())
    image = Image.new("RGB", (WIDTH, height), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    scale = (WIDTH - LEFT - RIGHT) / longest
    _legend(pen, font)
    top = TOP
    for title, rows in panels.items():
        pen.text((12, top), title, fill="black", font=ImageFont.load_default(17))
        top += GAP - 16
        _seconds(pen, font, top, top + len(rows) * ROW, longest)
        for row in rows:
            pen.text((12, top + 4), row.name, fill="black", font=font)
            for bar in row.bars:
                box = (LEFT + bar.begins * scale, top + 4, max(LEFT + bar.ends * scale, LEFT + bar.begins * scale + 1))
                pen.rectangle((box[0], box[1], box[2], top + ROW - 4), fill=COLOURS[bar.kind])
            top += ROW
        top += 36
    image.save(path)


def _legend(pen: ImageDraw.ImageDraw, font: ImageFont.ImageFont | ImageFont.FreeTypeFont) -> None:
    left = float(LEFT)
    for kind, text in LEGEND.items():
        pen.rectangle((left, 16, left + 18, 32), fill=COLOURS[kind])
        pen.text((left + 26, 15), text, fill="black", font=font)
        left += 60 + pen.textlength(text, font=font)


def _seconds(
    pen: ImageDraw.ImageDraw, font: ImageFont.ImageFont | ImageFont.FreeTypeFont, top: int, bottom: int, longest: float
) -> None:
    step = 0.5 if longest < 8 else 1.0
    for number in range(math.floor(longest / step) + 1):
        left = LEFT + number * step * (WIDTH - LEFT - RIGHT) / longest
        pen.line((left, top, left, bottom), fill="#e6e6e6")
        pen.text((left - 8, bottom), f"{number * step:g}", fill="#666666", font=font)
