"""How large results are, and what the result says of it: by client, by tenant, after an upscaler."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from functions.publish.main import handle
from shared.events.choices import Options
from shared.events.payloads import Face, Job, Media, ObjectRef, Result, Size
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore
from shared.tenancy.tenant import Policy, Tenant
from tests.functions.chain import JOB, Parts, StageContext

FACE = Face(100, 50, 200, 240, 0.9, 3.0)
PICTURE = ObjectRef("tenants/demo/inbox/t.png", "0" * 64, 1, "image/png")


class Stage:
    """publish over a folder, without models."""

    def __init__(self, root: Path) -> None:
        self.store = LocalStore(root)

    def run(
        self, pixels: np.ndarray, sent: tuple[int, int] | None, policy: Policy | None = None, **options: object
    ) -> tuple[Result, np.ndarray]:
        """`sent`: width and height of the target. The result and its pixels."""
        data = io.BytesIO()
        np.save(data, pixels)
        ref = TenantStore(self.store, "demo", JOB, "swap").save(
            "pixels.npy", data.getvalue(), "application/octet-stream"
        )
        asked = Options(format="png", **options)  # type: ignore[arg-type]
        media = Media(JOB, Job(JOB, (PICTURE,), PICTURE, asked), ref, (FACE,), Size(*sent) if sent else None)
        context = StageContext(TenantStore(self.store, "demo", JOB, "publish"), Parts(None, {}))  # type: ignore[arg-type]
        context.tenant = Tenant("demo", policy or Policy())
        result = handle(media, context)
        made = cv2.imdecode(np.frombuffer(self.store.get(result.image.key)[0], np.uint8), cv2.IMREAD_UNCHANGED)
        assert made is not None
        assert made.shape[:2] == (result.height, result.width)
        return result, made


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "objects")


def noise(width: int, height: int, channels: int = 3) -> np.ndarray:
    small = np.random.default_rng(1).integers(0, 256, (height // 16, width // 16, channels), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_NEAREST)


def test_as_large_as_it_is_by_default(stage: Stage) -> None:
    pixels = noise(2560, 1440)
    for sent in ((2560, 1440), None):
        result, made = stage.run(pixels, sent)
        assert np.array_equal(made, pixels)
        assert (result.faces, result.resized_from) == ((FACE,), None)


def test_a_phone_gets_720_lines_and_boxes_in_its_own_pixels(stage: Stage) -> None:
    pixels = noise(2560, 1440)
    result, made = stage.run(pixels, (2560, 1440), client="mobile")
    assert (result.width, result.height, result.resized_from) == (1280, 720, Size(2560, 1440))
    assert result.faces == (replace(FACE, x=50, y=25, width=100, height=120),)
    assert np.array_equal(made, pixels[::2, ::2]), "every pixel is the mean of four equal ones"


def test_nothing_is_enlarged_for_a_client(stage: Stage) -> None:
    pixels = noise(640, 480)
    for client in ("web", "mobile", "original"):
        result, made = stage.run(pixels, (640, 480), client=client)
        assert np.array_equal(made, pixels)
        assert result.resized_from is None


@pytest.mark.slow
def test_a_tenant_s_limit_holds_for_every_client(stage: Stage) -> None:
    pixels = noise(3840, 2160)
    for client, lines in (("original", 1440), ("web", 1080), ("mobile", 720)):
        result, _ = stage.run(pixels, (3840, 2160), Policy(max_output=1440), client=client)
        assert (result.height, result.resized_from) == (lines, Size(3840, 2160))


@pytest.mark.slow
def test_an_enlarged_picture_is_at_most_4k_and_its_boxes_grow(stage: Stage) -> None:
    twice = noise(2560, 1440)
    result, made = stage.run(twice, (1280, 720), upscaler="x")
    assert np.array_equal(made, twice)
    assert (result.faces, result.resized_from) == ((replace(FACE, x=200, y=100, width=400, height=480),), None)
    four = noise(5120, 2880)
    result, _ = stage.run(four, (1280, 720), upscaler="x")
    assert (result.width, result.height, result.resized_from) == (3840, 2160, Size(5120, 2880))
    assert result.faces == (replace(FACE, x=300, y=150, width=600, height=720),)
    result, _ = stage.run(four, (1280, 720), upscaler="x", client="mobile")
    assert (result.width, result.height, result.faces) == (1280, 720, (FACE,))


def test_alpha_is_reduced_with_the_picture(stage: Stage) -> None:
    pixels = noise(2560, 1440, 4)
    pixels[..., 3] = np.where(np.arange(2560) < 1280, 255, 0)
    _, made = stage.run(pixels, (2560, 1440), client="mobile")
    assert made.shape == (720, 1280, 4)
    assert np.array_equal(made[..., 3], pixels[::2, ::2, 3])
    assert np.array_equal(made[:, :640, :3], pixels[::2, :1280:2, :3])
