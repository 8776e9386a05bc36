"""The enhance stage on real pictures and real landmarks, with stand-ins for the learned models in a test catalogue."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from functions.enhance import main as enhance
from shared.errors import InvalidCloudEventError
from shared.events.payloads import Media
from shared.models.cache import ModelCache
from shared.models.registry import ModelRegistry
from shared.rejections import ImageTooLargeError
from shared.vision.runtime import Runtime
from tests.functions.chain import Chain
from tests.standins import enhancers, upscalers
from tests.standins.tables import cache_over, table, with_tables

FACE = Path(__file__).parents[1] / "data" / "face"
UPSCALER = upscalers.FAMILIES["real_esrgan_x2"]


@pytest.fixture(scope="session")
def registry(model_cache: ModelCache, tmp_path_factory: pytest.TempPathFactory) -> ModelRegistry:
    """The product's catalogue and three stand-ins more, fetched from where they were built."""
    folder = tmp_path_factory.mktemp("models")
    gfpgan, codeformer = enhancers.FAMILIES["gfpgan"], enhancers.FAMILIES["codeformer"]
    files = {
        "bright": enhancers.build(folder / "a", gfpgan, shift=(0.2, 0.2, 0.2))["model"],
        "weighted": enhancers.build(folder / "b", codeformer)["model"],
        "twice": upscalers.build(folder / "c", UPSCALER)["model"],
    }
    restorer, tiled = "shared.vision.enhancer.restorer:Restorer", "shared.vision.upscaler.tiled:Tiled"
    tables = [
        table("bright", "enhancer", restorer, {"model": files["bright"]}, gfpgan),
        table("weighted", "enhancer", restorer, {"model": files["weighted"]}, codeformer),
        table("twice", "upscaler", tiled, {"model": files["twice"]}, UPSCALER),
    ]
    return ModelRegistry(with_tables(folder, tables), cache_over(folder, model_cache), Runtime(threads=1))


@pytest.fixture
def chain(tmp_path: Path, model_files: Callable[[str], object], registry: ModelRegistry) -> Chain:
    for name in ("centerface", "face_mesh", "open_nsfw"):
        model_files(name)
    return Chain(tmp_path / "objects", registry)


@pytest.fixture
def swapped(chain: Chain, sample: Callable[[str], Path]) -> Callable[..., Media]:
    """A job with these options after its swap."""

    def run(target: Path | bytes = FACE / "three_faces_small_mid_large.jpg", **options: object) -> Media:
        return chain.swap(chain.detect(chain.job(sample("astronaut"), target, format="png", **options)))

    return run


def pixels(chain: Chain, media: Media) -> np.ndarray:
    return np.asarray(np.load(io.BytesIO(chain.store.get(media.pixels.key)[0])))


def test_faces_are_restored_and_nothing_else(chain: Chain, swapped: Callable[..., Media]) -> None:
    before = swapped(enhancer="bright")
    after = chain.enhance(before)
    assert replace(after, pixels=before.pixels) == before
    assert "/enhance/" in after.pixels.key
    old, new = pixels(chain, before).astype(int), pixels(chain, after).astype(int)
    assert len(before.faces) == 3
    near = np.zeros(old.shape[:2], bool)
    for face in before.faces:
        x, y = int(face.x + face.width / 2), int(face.y + face.height / 2)
        gain = new[y, x] - old[y, x]
        assert gain == pytest.approx(0.8 * 0.2 * 127.5, abs=6), "resampled, then 0.8 of 25.5 levels"
        reach = int(max(face.width, face.height) * 1.6)
        near[max(0, y - reach) : y + reach, max(0, x - reach) : x + reach] = True
    assert not (new != old)[~near].any()


def test_a_blend_of_nothing_changes_nothing(chain: Chain, swapped: Callable[..., Media]) -> None:
    before = swapped(enhancer="weighted", enhance_blend=0.0)
    assert np.array_equal(pixels(chain, before), pixels(chain, chain.enhance(before)))


def test_the_picture_is_enlarged_then_its_faces_are_restored_where_they_now_are(
    chain: Chain, swapped: Callable[..., Media]
) -> None:
    before = swapped(enhancer="bright", upscaler="twice", faces="one")
    after = chain.enhance(before)
    old, new = pixels(chain, before), pixels(chain, after)
    plain = old.repeat(2, 0).repeat(2, 1)
    assert new.shape == plain.shape
    changed = (new != plain).any(axis=2)
    rows, columns = np.nonzero(changed)
    (face,) = before.faces
    centre = np.array([face.x + face.width / 2, face.y + face.height / 2]) * 2
    assert np.hypot(*(np.array([columns.mean(), rows.mean()]) - centre)) < face.width * 0.5
    assert after.landmarks is None
    assert after.faces == before.faces
    result = chain.publish(after)
    assert (result.height, result.width) == plain.shape[:2]


def test_only_an_upscaler_asks_for_no_landmarks(chain: Chain, swapped: Callable[..., Media]) -> None:
    before = replace(swapped(upscaler="twice"), landmarks=None)
    after = pixels(chain, chain.enhance(before))
    assert np.array_equal(after, pixels(chain, before).repeat(2, 0).repeat(2, 1))


def test_alpha_is_enlarged_with_the_picture(chain: Chain, swapped: Callable[..., Media]) -> None:
    with Image.open(FACE / "one_face.jpg") as picture:
        picture.putalpha(Image.linear_gradient("L").resize(picture.size))
        stream = io.BytesIO()
        picture.save(stream, "PNG")
    before = swapped(stream.getvalue(), upscaler="twice", enhancer="bright")
    old, new = pixels(chain, before), pixels(chain, chain.enhance(before))
    assert new.shape == (old.shape[0] * 2, old.shape[1] * 2, 4)
    assert np.array_equal(new[..., 3], cv2.resize(old[..., 3], new.shape[1::-1], interpolation=cv2.INTER_LINEAR))


def test_a_result_beyond_4k_is_a_rejection_that_names_the_cap(chain: Chain, swapped: Callable[..., Media]) -> None:
    media = swapped(upscaler="twice")
    data = io.BytesIO()
    np.save(data, np.zeros((1081, 1920, 3), np.uint8))
    large = replace(
        media, pixels=chain.context("swap").storage.save("large.npy", data.getvalue(), "application/octet-stream")
    )
    with pytest.raises(ImageTooLargeError, match=r"3840 x 2160 \(4K\)"):
        chain.enhance(large)


def test_landmarks_that_are_missing_are_named(chain: Chain, swapped: Callable[..., Media]) -> None:
    with pytest.raises(InvalidCloudEventError, match="landmarks"):
        enhance.handle(replace(swapped(enhancer="bright"), landmarks=None), chain.context("enhance"))


def test_the_whole_chain_ends_with_a_picture(chain: Chain, sample: Callable[[str], Path]) -> None:
    options = {"enhancer": "weighted", "upscaler": "twice", "enhance_blend": 1.0}
    result, data = chain.run(sample("astronaut"), FACE / "one_face.jpg", format="png", **options)
    with Image.open(FACE / "one_face.jpg") as before, Image.open(io.BytesIO(data)) as after:
        assert after.size == (before.width * 2, before.height * 2) == (result.width, result.height)
