"""Text in pictures: what is found, where, and what it says; the real networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.errors import ModelInvalidError
from shared.models import catalog
from shared.models.convert import characters
from shared.vision.parameters import Parameters
from shared.vision.protocols import Image, ModelAssets
from shared.vision.reader.letters import decoded
from shared.vision.reader.lines import LineFinder, crop, in_reading_order
from shared.vision.reader.pp_ocr import PpOcr
from shared.vision.runtime import Runtime
from tests.lettering import lettered

NUMBERS = catalog.default().model("pp_ocr_v6_small").parameters
FINDER = LineFinder.read(Parameters(ModelAssets("pp_ocr_v6_small", {}, NUMBERS)))


@pytest.fixture(scope="module")
def reader(model_files: Callable[[str], Mapping[str, Path]], runtime: Runtime) -> PpOcr:
    made = PpOcr(ModelAssets("pp_ocr_v6_small", model_files("pp_ocr_v6_small"), NUMBERS), runtime)
    made.warm()
    return made


def texts(reader: PpOcr, image: Image) -> list[str]:
    return [line.text for line in reader.read(image)]


@pytest.mark.parametrize("height", [14, 24, 48, 120])
@pytest.mark.parametrize("colours", [("black", "white"), ("white", "black"), ("yellow", "navy")])
def test_letters_are_read_in_many_sizes_and_colours(reader: PpOcr, height: int, colours: tuple[str, str]) -> None:
    image = lettered(((30, 150), "Forbidden", height), ink=colours[0], paper=colours[1])
    assert texts(reader, image) == ["Forbidden"]


@pytest.mark.parametrize("angle", [-15, -5, 5, 15])
def test_a_tilted_line_is_straightened(reader: PpOcr, angle: float) -> None:
    image = lettered(((200, 200), "Forbidden 42", 40), angle=angle)
    (line,) = reader.read(image)
    assert line.text == "Forbidden 42"
    along = line.box[1] - line.box[0]
    assert np.degrees(np.arctan2(-along[1], along[0])) == pytest.approx(angle, abs=3)


def test_lines_come_in_reading_order_with_boxes_around_their_ink(reader: PpOcr) -> None:
    image = lettered(((40, 60), "left one", 30), ((450, 64), "right one", 30), ((40, 300), "below", 30))
    lines = reader.read(image)
    assert [line.text for line in lines] == ["left one", "right one", "below"]
    for line in lines:
        assert line.score > 0.9
        inside = np.zeros(image.shape[:2], np.uint8)
        cv2.fillPoly(inside, [np.rint(line.box).astype(np.int32)], 1)
        ink = (image[..., 0] < 128) & (inside > 0)
        assert ink.sum() > 100
    covered = np.zeros(image.shape[:2], np.uint8)
    cv2.fillPoly(covered, [np.rint(line.box).astype(np.int32) for line in lines], 1)
    assert not ((image[..., 0] < 128) & (covered == 0)).any(), "no ink outside"


@pytest.mark.parametrize("shape", [(1, 1), (20, 30), (16, 900), (900, 16), (450, 800)])
def test_a_picture_without_text_says_nothing(reader: PpOcr, shape: tuple[int, int]) -> None:
    assert reader.read(np.full((*shape, 3), 90, np.uint8)) == []


def test_a_line_that_runs_downwards_is_read(reader: PpOcr) -> None:
    image = np.rot90(lettered(((100, 150), "Forbidden", 48)), -1)
    assert texts(reader, np.ascontiguousarray(image)) == ["Forbidden"]


def test_a_long_line_and_many_lines_share_runs(reader: PpOcr) -> None:
    many = [((20, 10 + 48 * row), f"row number {row} of many", 24) for row in range(9)]
    assert texts(reader, lettered(*many)) == [text for _, text, _ in many]
    long = "a very long line of small letters that goes on and on over the whole width of the picture"
    assert texts(reader, lettered(((10, 100), long, 24), size=(1200, 300))) == [long]


def test_boxes_grow_back_to_the_letters() -> None:
    """DB shows lines shrunk by area x ratio / perimeter; the numbers are exact for rectangles."""
    text = np.zeros((200, 400), np.float32)
    text[80:100, 100:200] = 1
    (box,) = FINDER.find(text, 800, 400)
    mask_w, mask_h = 100, 20  # the 2 x 2 dilation adds a pixel, the pixels' centres lose one
    grown = 2 * mask_w * mask_h * 1.6 / (2 * (mask_w + mask_h))
    assert (box[1, 0] - box[0, 0]) / 2 == pytest.approx(mask_w + grown, abs=1)
    assert (box[3, 1] - box[0, 1]) / 2 == pytest.approx(mask_h + grown, abs=1)


def test_noise_and_unsure_regions_are_no_lines() -> None:
    text = np.zeros((100, 100), np.float32)
    text[10:12, 10:60] = 1  # too thin
    text[50:70, 10:60] = 0.3001  # text by the lower threshold, no line by the mean
    assert FINDER.find(np.where(text == 0.3001, np.float32(0.25), text), 100, 100) == []
    assert len(FINDER.find(np.where(text == 0.3001, np.float32(0.8), text), 100, 100)) == 1


def test_reading_order_is_by_rows() -> None:
    square = np.array([[0, 0], [40, 0], [40, 20], [0, 20]], np.float32)
    places = [(200, 4), (0, 60), (0, 0), (100, 58)]
    ordered = in_reading_order([square + np.array(place, np.float32) for place in places])
    assert [tuple(box[0].astype(int)) for box in ordered] == [(0, 0), (200, 4), (0, 60), (100, 58)]


def test_a_crop_is_no_higher_than_asked_and_keeps_its_proportions() -> None:
    image = np.zeros((500, 900, 3), np.uint8)
    box = np.array([[50, 50], [850, 50], [850, 450], [50, 450]], np.float32)
    assert crop(image, box, 96).shape == (96, 192, 3)


def test_ctc_drops_blanks_and_repeats() -> None:
    known = np.array(["", "a", "b", " "])
    steps = [0, 1, 1, 0, 1, 2, 2, 3, 0]
    chances = np.full((len(steps), 4), 0.1, np.float32)
    chances[np.arange(len(steps)), steps] = 0.7
    text, score = decoded(chances, known)
    assert (text, score) == ("aab ", pytest.approx(0.7))
    assert decoded(chances[:1], known) == ("", 0.0)


def test_a_graph_without_characters_is_refused(
    model_files: Callable[[str], Mapping[str, Path]], tmp_path: Path
) -> None:
    with pytest.raises(ModelInvalidError):
        characters.convert(model_files("pp_ocr_v6_small")["detector"], tmp_path / "characters.txt")
    assert not (tmp_path / "characters.txt").exists()
