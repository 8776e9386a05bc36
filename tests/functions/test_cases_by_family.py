"""The field cases that a swapper can break, through the real stages with one model of every learned family.

The models are stand-ins fetched by the real registry from tables as the catalogue has them, with licences that nobody
stated: the tenant's policy is `any`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from shared.context import Models
from shared.events.payloads import Result
from shared.models.cache import ModelCache
from shared.models.choice import TenantModels
from shared.models.registry import ModelRegistry
from shared.rejections import (
    AmbiguousSourceFaceError,
    FaceTooSmallError,
    ModelForbiddenError,
    NoFaceInSourceError,
    NoFaceInTargetError,
)
from shared.tenancy.tenant import Policy
from shared.vision.protocols import Detector, Floats
from shared.vision.runtime import Runtime
from tests.functions.chain import Chain, Parts
from tests.functions.pictures import bgr, changed, outside
from tests.functions.remembering import Remembering
from tests.functions.test_stages import Shuffled, Stub
from tests.standins import embedders, swappers
from tests.standins.tables import cache_over, table, with_tables

FAMILIES = {
    "inswapper_128": "inswapper",
    "simswap_256": "simswap_256",
    "ghost_1_256": "ghost",
    "hififace_unofficial_256": "hififace",
    "hyperswap_1a_256": "hyperswap",
    "alphaface_256": "alphaface",
    "blendswap_256": "blendswap",
    "uniface_256": "uniface",
}
"""The stand-in of each, by the catalogue's name of the real model."""
FACE = Path(__file__).parents[1] / "data" / "face"
IMAGE = Path(__file__).parents[1] / "data" / "image"
THREE, TWICE, ONE = (FACE / f"{name}.jpg" for name in ("three_faces_small_mid_large", "same_face_twice", "one_face"))
AROUND = 0.35
"""How far the widest crop reaches beyond a face's box and `outside`'s own margin, in parts of its longer side."""
WIDER = {"test_blendswap": 12, "test_uniface": 12}
"""Crops of FFHQ show the whole head: by so many pixels they leave the case's region."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def registry(
    model_cache: ModelCache, model_files: Callable[[str], object], tmp_path_factory: pytest.TempPathFactory
) -> ModelRegistry:
    for name in ("centerface", "face_mesh", "open_nsfw"):
        model_files(name)
    folder = tmp_path_factory.mktemp("models")
    arcface = "shared.vision.embedder.arcface:ArcFace"
    tables = [table("test_arcface", "embedder", arcface, embedders.build(folder / "e"), embedders.PARAMETERS)]
    tables += [swapper(name, swappers.build(name, folder)) for name in FAMILIES.values()]
    catalog = with_tables(folder, tables).choosing({"embedder": "test_arcface"})
    return Remembering(catalog, cache_over(folder, model_cache), Runtime(threads=1))


def swapper(name: str, files: dict[str, Path]) -> str:
    known = swappers.FAMILIES[name]
    uses = {"embedder": "test_arcface"} if len(known.source) == 1 else {}
    return table(f"test_{name}", "swapper", known.adapter, files, known.parameters, commercial="unknown", uses=uses)


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return f"test_{request.param}"


class FamilyChain(Chain):
    """Whose jobs ask for one swapper."""

    def __init__(self, root: Path, models: Models, family: str) -> None:
        super().__init__(root, models)
        self.family = family

    def run(self, source: Path | bytes, target: Path | bytes, **options: object) -> tuple[Result, bytes]:
        return super().run(source, target, **{"swapper": self.family, "format": "png", **options})


@pytest.fixture
def chain(tmp_path: Path, registry: ModelRegistry, family: str) -> FamilyChain:
    models = TenantModels(registry, registry._catalog, Policy(licences="any"))
    return FamilyChain(tmp_path / "objects", models, family)


@pytest.fixture
def astronaut(sample: Callable[[str], Path]) -> Path:
    return sample("astronaut")


def columns(difference: np.ndarray) -> set[int]:
    """Which of THREE's faces changed: each has a part of the picture's width to itself."""
    return {index for index, (x0, x1) in enumerate(((0, 150), (150, 370), (370, 640))) if difference[:, x0:x1].any()}


def test_only_who_may_use_such_a_model_gets_it(chain: FamilyChain, registry: ModelRegistry, astronaut: Path) -> None:
    chain.models = TenantModels(registry, registry._catalog, Policy())
    with pytest.raises(ModelForbiddenError):
        chain.run(astronaut, ONE)


def test_face_01_no_face_is_told_by_picture(chain: FamilyChain) -> None:
    with pytest.raises(NoFaceInTargetError):
        chain.run(ONE, FACE / "no_face.png")
    with pytest.raises(NoFaceInSourceError):
        chain.run(FACE / "no_face.png", ONE)


def test_face_02_which_face_is_swapped(chain: FamilyChain, astronaut: Path) -> None:
    before = bgr(THREE.read_bytes())
    for faces, expected in (("one", {2}), ("many", {0, 1, 2}), ("0", {0}), ("1", {1}), ("2", {2})):
        result, data = chain.run(astronaut, THREE, faces=faces)
        difference = changed(before, bgr(data))
        assert columns(difference) == expected
        assert not (difference & outside(result, before, AROUND)).any()
        if faces == "one":
            more = WIDER.get(chain.family, 0)
            assert difference[20:277, 400:609].mean() > 0.5
            difference[20 - more : 277 + more, 400 - more : 609 + more] = False
            assert not difference.any(), "the case's own region"
    assert len(chain.run(astronaut, TWICE)[0].faces) == 2


def test_face_02_all_faces_of_the_person_on_the_reference(chain: FamilyChain, astronaut: Path) -> None:
    job = chain.job(astronaut, TWICE, swapper=chain.family, faces="reference", similarity=0.8)
    job = replace(job, reference=chain.put("x/r", ONE.read_bytes(), "image/jpeg"))
    result = chain.publish(chain.swap(chain.detect(chain.moderate(job))))
    assert [int(face.x // 100) for face in result.faces] == [0, 3]


def test_face_02_the_detectors_order_changes_no_byte(chain: FamilyChain, astronaut: Path) -> None:
    detector, models, written = chain.models.get("detector", Detector), chain.models, set()
    for order in range(3):
        chain.models = Parts(models, {"detector": Shuffled(detector, order)})
        written.add(chain.run(astronaut, THREE)[1])
    assert len(written) == 1


def test_face_03_several_source_faces_are_ambiguous(chain: FamilyChain) -> None:
    source = FACE / "source_two_faces.jpg"
    with pytest.raises(AmbiguousSourceFaceError) as caught:
        chain.run(source, ONE)
    assert caught.value.context["faces"] == 2
    made = {}
    for chosen, x in (("largest", 40), ("0", 40), ("1", 280)):
        result, made[chosen] = chain.run(source, ONE, source_face=chosen)
        assert [round(face.x, -1) for face in result.source_faces] == [x]
    assert made["largest"] == made["0"] != made["1"], "another source face, another picture"


@pytest.mark.parametrize(
    ("name", "axis", "edge"), [("face_cut_left_border.jpg", 1, 120), ("face_cut_top_border.jpg", 0, 160)]
)
def test_face_05_faces_cut_by_the_border(chain: FamilyChain, name: str, axis: int, edge: int, astronaut: Path) -> None:
    before = bgr((FACE / name).read_bytes())
    try:
        result, data = chain.run(astronaut, FACE / name)
    except NoFaceInTargetError:
        return
    difference = changed(before, bgr(data))
    assert bgr(data).shape == before.shape
    assert difference.any()
    assert not (difference & outside(result, before, AROUND)).any()
    assert not np.take(difference, range(edge, before.shape[axis]), axis=axis).any()


def test_face_05_a_box_that_leaves_the_picture_is_clipped(chain: FamilyChain, astronaut: Path) -> None:
    found = chain.detect(chain.job(astronaut, ONE))
    with np.load(io.BytesIO(chain.store.get(found.landmarks.key)[0])) as landmarks:
        mesh: Floats = landmarks["target"][0]
    corner = np.append(mesh[:, :2].min(axis=0), 0)
    moved = ((mesh - corner) * (105 / np.ptp(mesh[:, 0])) + np.array([-35, 30, 0])).astype(np.float32)
    stub = Stub(np.array([-35, 30, 70, 150], np.float32), moved)
    chain.models = Parts(chain.models, {"detector": stub, "landmarker": stub})
    _, data = chain.run(astronaut, ONE)
    before, after = bgr(ONE.read_bytes()), bgr(data)
    assert after.shape == before.shape
    assert changed(before, after)[:, :71].any()
    assert not changed(before, after)[:, 160:].any(), "nothing is pasted on the other side"


def test_face_07_what_is_no_usable_face(chain: FamilyChain, astronaut: Path) -> None:
    with pytest.raises(FaceTooSmallError):
        chain.run(astronaut, FACE / "tiny_face_17px.jpg")
    for name in ("cartoon_smiley.png", "face_occluded_all.jpg"):
        with pytest.raises(NoFaceInTargetError):
            chain.run(astronaut, FACE / name)


@pytest.mark.parametrize("name", ["face_blurred.jpg", "face_very_dark.jpg", "face_occluded_mouth.jpg"])
def test_face_07_a_hard_face_is_named_or_refused(chain: FamilyChain, name: str, astronaut: Path) -> None:
    try:
        result, data = chain.run(astronaut, FACE / name)
    except (NoFaceInTargetError, FaceTooSmallError):
        return
    before = bgr((FACE / name).read_bytes())
    (face,) = result.faces
    assert face.score >= 0.5
    assert min(face.width, face.height) >= 20
    difference = changed(before, bgr(data))
    assert difference.any()
    assert not (difference & outside(result, before, AROUND)).any()


def test_img_01_orientation_is_applied_once(chain: FamilyChain, astronaut: Path) -> None:
    upright = cv2.imread(str(IMAGE / "upright_240x320.png"), cv2.IMREAD_COLOR)
    assert upright is not None
    for value in range(2, 10):
        name = f"exif_orientation_{value}.jpg" if value < 9 else "exif_orientation_invalid_9.jpg"
        result, data = chain.run(astronaut, IMAGE / name)
        picture = bgr(data).astype(int)
        assert picture.shape == (320, 240, 3) == (result.height, result.width, 3)
        for (x, y), colour in (((8, 8), (0, 0, 255)), ((231, 8), (255, 0, 0)), ((8, 311), (0, 255, 0))):
            assert np.abs(picture[y, x] - colour).max() <= 40, name
        assert np.abs(picture - upright)[outside(result, picture)].mean() <= 6
        with Image.open(io.BytesIO(data)) as written:
            assert written.getexif().get(0x0112, 1) == 1


@pytest.mark.parametrize("name", ["cmyk_adobe.jpg", "ycck_adobe.jpg", "mpo_two_frames.jpg", "gray.jpg"])
def test_img_03_unusual_pictures_come_out_plain(chain: FamilyChain, name: str, astronaut: Path) -> None:
    result, data = chain.run(astronaut, IMAGE / name, format="same")
    with Image.open(io.BytesIO(data)) as out:
        assert (out.format, out.mode, getattr(out, "n_frames", 1)) == ("JPEG", "RGB", 1)
    plain = bgr((IMAGE / ("gray.jpg" if name == "gray.jpg" else "progressive.jpg")).read_bytes()).astype(int)
    difference = np.abs(bgr(data).astype(int) - plain)
    assert difference[outside(result, plain)].mean() <= 6
    assert difference.max() > 20, "a face was swapped"


def test_img_03_a_bilevel_picture_shows_no_face(chain: FamilyChain, astronaut: Path) -> None:
    with pytest.raises(NoFaceInTargetError):
        chain.run(astronaut, IMAGE / "bilevel.png")


@pytest.mark.parametrize(
    "name", ["rgba_alpha.png", "palette_trns_bytes.png", "palette_trns_index.png", "gray_alpha_LA.png"]
)
def test_img_05_alpha_is_kept(chain: FamilyChain, name: str, astronaut: Path) -> None:
    _, data = chain.run(astronaut, IMAGE / name, format="same")
    with Image.open(io.BytesIO(data)) as out, Image.open(IMAGE / name) as original:
        assert out.format == "PNG"
        alpha = np.asarray(original.convert("RGBA"))[..., 3]
        assert np.array_equal(np.asarray(out.convert("RGBA"))[..., 3], alpha)
    _, flat = chain.run(astronaut, IMAGE / name, format="jpeg")
    if not alpha[100, 4]:
        assert bgr(flat)[100, 4].min() >= 250, "on white"
