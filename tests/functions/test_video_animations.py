"""Animated pictures through all stages: each frame for as long, as often, and as transparent as before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shared.context import Models
from tests.functions.film import Film
from tests.unit.video.animated import shown

STEPS = [40, 60, 100, 40, 250, 30, 70]
"""Milliseconds that each frame is shown for."""
SIZE = (192, 240)
KEPT = {"gif": {"disposal": 2}, "png": {"disposal": 1, "blend": 0}, "webp": {"lossless": True}}
"""How Pillow writes transparency that lets nothing of the frame before be seen."""
CLEAR = 200
"""Rows from here on are transparent; above them a growing column at the left is."""
BELOW = np.s_[170:CLEAR]
"""Rows under the chin."""


def frames(astronaut: Path) -> list[Image.Image]:
    """A window that wanders over the still."""
    found = []
    with Image.open(astronaut) as still:
        for number in range(len(STEPS)):
            x, y = 130 + 3 * number, number
            pixels = np.array(still.convert("RGBA").crop((x, y, x + SIZE[0], y + SIZE[1])))
            pixels[CLEAR:, :, 3] = pixels[:, : 14 + number, 3] = 0
            found.append(Image.fromarray(pixels))
    return found


@pytest.mark.parametrize(("form", "loop"), [("gif", 3), ("gif", None), ("png", 2), ("webp", 3)])
def test_delays_loops_and_transparency_are_kept(
    form: str, loop: int | None, tmp_path: Path, registry: Models, astronaut: Path
) -> None:
    first, *rest = frames(astronaut)
    played = {} if loop is None else {"loop": loop}
    first.save(
        target := tmp_path / f"target.{form}", save_all=True, append_images=rest, duration=STEPS, **KEPT[form], **played
    )
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(astronaut, target, quality=100))
    assert path.suffix == f".{form}"
    assert (result.frames, result.frames_swapped, result.seconds) == (len(STEPS), len(STEPS), sum(STEPS) / 1000)
    before, after = shown(target), shown(path)
    assert after[0] == before[0] == STEPS
    assert after[2] == before[2]
    assert not {"frames_dropped", "alpha_dropped"} & {*result.warnings}
    for old, new in zip(before[1], after[1], strict=True):
        assert np.array_equal(new[..., 3], old[..., 3])
        opaque = old[..., 3] == 255
        change = np.abs(old[..., :3].astype(int) - new[..., :3]).max(2) * opaque
        assert change[60:160, 60:160].max() > 40, "the face"
        assert change[BELOW].mean() < 6, "palette and encoder alone"


def test_a_png_whose_still_picture_is_not_part_of_the_animation_is_the_animation(
    tmp_path: Path, registry: Models, astronaut: Path
) -> None:
    still, *rest = frames(astronaut)
    still.save(
        target := tmp_path / "target.png",
        save_all=True,
        append_images=rest,
        duration=STEPS[1:],
        default_image=True,
        **KEPT["png"],
    )
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(astronaut, target))
    assert (result.frames, result.frames_swapped) == (len(rest), len(rest))
    assert shown(path)[0] == STEPS[1:]


@pytest.mark.parametrize(("form", "into"), [("gif", "webp"), ("png", "gif"), ("webp", "png")])
def test_one_kind_of_animation_becomes_another(
    form: str, into: str, tmp_path: Path, registry: Models, astronaut: Path
) -> None:
    first, *rest = frames(astronaut)
    first.save(target := tmp_path / f"target.{form}", save_all=True, append_images=rest, duration=STEPS, **KEPT[form])
    film = Film(tmp_path / "objects", registry)
    _, path = film.run(film.job(astronaut, target, format=into))
    before, after = shown(target), shown(path)
    assert after[0] == STEPS
    assert max(int((new[..., 3] != old[..., 3]).sum()) for old, new in zip(before[1], after[1], strict=True)) == 0
