"""The picture stages on real pictures with real models; the field cases of faces and formats end to end."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from shared.context import Models
from shared.rejections import (
    AmbiguousSourceFaceError,
    AnimationUnsupportedError,
    ContentRefusedError,
    FaceTooSmallError,
    InvalidKeyError,
    MediaCorruptError,
    MediaTruncatedError,
    NoFaceInSourceError,
    NoFaceInTargetError,
    ObjectChangedError,
    ObjectGoneError,
)
from shared.storage import keys
from shared.tenancy.tenant import Policy, Tenant
from shared.vision.geometry import five_points
from shared.vision.protocols import Detection, Detector, Floats, Landmarks
from shared.vision.protocols import Image as Pixels
from tests.functions.chain import Chain, Parts
from tests.functions.pictures import bgr, changed, outside

FACE = Path(__file__).parents[1] / "data" / "face"
IMAGE = Path(__file__).parents[1] / "data" / "image"


@pytest.fixture
def chain(tmp_path: Path, registry: Models) -> Chain:
    return Chain(tmp_path / "objects", registry)


def test_a_group_gets_the_source_s_features_and_nothing_else_changes(
    chain: Chain, astronaut: Path, sample: Callable[[str], Path]
) -> None:
    result, data = chain.run(astronaut, sample("t1"), format="png")
    before, after = bgr(sample("t1").read_bytes()), bgr(data)
    assert len(result.faces) == 6
    assert after.shape == before.shape == (result.height, result.width, 3)
    outside = np.ones(before.shape[:2], bool)
    for face in result.faces:
        y0, y1 = int(face.y - face.height * 0.3), int(face.y + face.height * 1.3)
        x0, x1 = int(face.x - face.width * 0.4), int(face.x + face.width * 1.4)
        outside[max(y0, 0) : y1, max(x0, 0) : x1] = False
        assert changed(before, after)[int(face.y) : int(face.y + face.height), int(face.x) :].any()
    assert not (changed(before, after) & outside).any()


def test_the_same_work_twice_gives_the_same_bytes(chain: Chain, astronaut: Path) -> None:
    first = chain.run(astronaut, FACE / "one_face.jpg")
    second = chain.run(astronaut, FACE / "one_face.jpg")
    assert first[1] == second[1]


def test_what_of_a_source_will_be_seen_is_told(chain: Chain, astronaut: Path, sample: Callable[[str], Path]) -> None:
    assert chain.run(astronaut, FACE / "one_face.jpg")[0].warnings == ("source_laughing",), "all her teeth are seen"
    hard, _ = chain.run(sample("hanks"), FACE / "one_face.jpg")
    assert "source_hard_light" in hard.warnings
    small, _ = chain.run(FACE / "one_face.jpg", astronaut)
    assert small.warnings[0] == "source_small", "what detect saw stands first"


def test_results_carry_our_mark_and_none_of_the_input_s_metadata(chain: Chain, astronaut: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "home address"
    with Image.open(FACE / "one_face.jpg") as picture:
        stream = io.BytesIO()
        picture.save(stream, "JPEG", exif=exif, comment=b"secret comment")
    result, data = chain.run(astronaut, stream.getvalue())
    assert b"home address" not in data
    assert b"secret comment" not in data
    assert chain.store.head(result.image.key).metadata["wakeswap-job"] == result.job


def test_moderation_refuses_above_the_tenant_s_threshold(chain: Chain, astronaut: Path) -> None:
    job, context = chain.job(astronaut, FACE / "one_face.jpg"), chain.context("moderate")
    from functions.moderate.main import handle

    context.tenant = Tenant("demo", Policy(nsfw_threshold=0.0))
    with pytest.raises(ContentRefusedError) as caught:
        handle(job, context)
    assert caught.value.context["picture"] == "source"
    context.tenant = Tenant("demo", Policy(nsfw_threshold=0.99))
    assert handle(job, context) == job


def test_a_reference_to_another_tenant_s_picture_leads_nowhere(chain: Chain, astronaut: Path) -> None:
    job = chain.job(astronaut, FACE / "one_face.jpg")
    chain.store.put(keys.inbox("other", "private.jpg"), (FACE / "one_face.jpg").read_bytes())
    stolen = replace(job.target, key=keys.inbox("other", "private.jpg"))
    for stage in (chain.moderate, chain.detect):
        with pytest.raises(InvalidKeyError):
            stage(replace(job, target=stolen))


def test_replaced_and_deleted_inputs_are_told_apart(chain: Chain, astronaut: Path) -> None:
    job = chain.job(astronaut, FACE / "one_face.jpg")
    chain.store.put(job.target.key, b"x" * job.target.size)
    with pytest.raises(ObjectChangedError):
        chain.detect(job)
    chain.store.delete(job.target.key)
    with pytest.raises(ObjectGoneError):
        chain.detect(job)


@pytest.mark.slow
@pytest.mark.parametrize("value", range(2, 10))
def test_img_01_orientation_is_applied_once(chain: Chain, value: int, astronaut: Path) -> None:
    name = f"exif_orientation_{value}.jpg" if value < 9 else "exif_orientation_invalid_9.jpg"
    upright = cv2.imread(str(IMAGE / "upright_240x320.png"), cv2.IMREAD_COLOR)
    assert upright is not None
    for form in ("png", "same"):
        result, data = chain.run(astronaut, IMAGE / name, format=form)
        picture = bgr(data).astype(int)
        assert picture.shape == (320, 240, 3) == (result.height, result.width, 3)
        for (x, y), colour in (((8, 8), (0, 0, 255)), ((231, 8), (255, 0, 0)), ((8, 311), (0, 255, 0))):
            assert np.abs(picture[y, x] - colour).max() <= 40
        assert np.abs(picture - upright)[outside(result, picture)].mean() <= 6
        with Image.open(io.BytesIO(data)) as written:
            assert written.getexif().get(0x0112, 1) == 1
            assert written.format == ("PNG" if form == "png" else "JPEG")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cmyk_adobe.jpg", "ycck_adobe.jpg", "mpo_two_frames.jpg", "gray.jpg", "bilevel.png"])
def test_img_03_unusual_pictures_come_out_plain(chain: Chain, name: str, astronaut: Path) -> None:
    """The 1-bit picture shows no face to anyone: refused as that, and as nothing else."""
    if name == "bilevel.png":
        with pytest.raises(NoFaceInTargetError):
            chain.run(astronaut, IMAGE / name)
        return
    result, data = chain.run(astronaut, IMAGE / name)
    with Image.open(io.BytesIO(data)) as out:
        assert (out.format, out.mode, getattr(out, "n_frames", 1)) == ("JPEG", "RGB", 1)
    assert data.count(b"\xff\xd8\xff") == 1
    picture, plain = bgr(data).astype(int), bgr((IMAGE / "progressive.jpg").read_bytes()).astype(int)
    if name == "gray.jpg":
        plain = bgr((IMAGE / name).read_bytes()).astype(int)
    else:
        blue, green, red = picture[8, 8]
        assert red >= 240, "a lossy output moves the 245 of the decoded picture by a few"
        assert max(green, blue) <= 15
    assert np.abs(picture - plain)[outside(result, picture)].mean() <= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rgba_alpha.png", "palette_trns_bytes.png", "palette_trns_index.png", "gray_alpha_LA.png"]
)
def test_img_05_alpha_is_kept(chain: Chain, name: str, astronaut: Path) -> None:
    _, data = chain.run(astronaut, IMAGE / name)
    with Image.open(io.BytesIO(data)) as out, Image.open(IMAGE / name) as original:
        assert out.format == "PNG"
        assert np.array_equal(np.asarray(out.convert("RGBA"))[..., 3], np.asarray(original.convert("RGBA"))[..., 3])
        clear = np.asarray(original.convert("RGBA"))[..., 3] == 0
    _, flat = chain.run(astronaut, IMAGE / name, format="jpeg")
    if name == "palette_trns_index.png":  # its clear pixels are single ones, which JPEG mixes with their neighbours
        assert bgr(flat)[clear].mean() > 150
    else:
        assert clear[100, 4]
        assert bgr(flat)[100, 4].min() >= 250


@pytest.mark.parametrize("name", ["anim_3frames.gif", "anim_3frames.webp", "anim_3frames_apng.png"])
def test_img_06_an_animation_is_refused_and_never_becomes_a_still(chain: Chain, name: str, astronaut: Path) -> None:
    for source, target in ((astronaut, IMAGE / name), (IMAGE / name, astronaut)):
        with pytest.raises(AnimationUnsupportedError) as caught:
            chain.moderate(chain.job(source, target))
        assert caught.value.status == 415
    assert not chain.store.list("tenants/demo/results/").objects


@pytest.mark.parametrize(("name", "error"), [
    ("truncated_60pct.jpg", MediaTruncatedError),
    ("truncated_last_2_bytes.jpg", MediaTruncatedError),
    ("truncated_50pct.png", MediaTruncatedError),
    ("png_bad_crc.png", MediaCorruptError),
])  # fmt: skip
def test_img_08_damaged_files_stop_at_the_first_stage(
    chain: Chain, name: str, error: type[Exception], astronaut: Path
) -> None:
    with pytest.raises(error) as caught:
        chain.moderate(chain.job(astronaut, IMAGE / name))
    assert caught.value.status == 422  # type: ignore[attr-defined]
    assert not chain.store.list("tenants/demo/results/").objects


@pytest.mark.slow
@pytest.mark.parametrize("name", ["png_named.jpg", "webp_named.png", "polyglot_jpeg_zip.jpg"])
def test_img_10_judged_by_content_and_rewritten(chain: Chain, name: str, astronaut: Path) -> None:
    result, data = chain.run(astronaut, IMAGE / name)
    assert len(result.faces) == 1
    assert b"PK\x03\x04" not in data
    with Image.open(io.BytesIO(data)) as out:
        out.load()
        assert result.image.content_type == f"image/{str(out.format).lower()}"


def test_img_10_a_tiny_polyglot_is_refused_for_its_face(chain: Chain, astronaut: Path) -> None:
    with pytest.raises(FaceTooSmallError):
        chain.run(astronaut, IMAGE / "polyglot_gif_html.gif")


def test_face_01_no_face_is_told_by_picture(chain: Chain) -> None:
    with pytest.raises(NoFaceInTargetError):
        chain.detect(chain.job(FACE / "one_face.jpg", FACE / "no_face.png"))
    # the source is looked at first: with a target that cannot be decoded the answer is still the source's
    with pytest.raises(NoFaceInSourceError):
        chain.detect(chain.job(FACE / "no_face.png", b"\x89PNG not a picture"))


@pytest.mark.slow
def test_face_02_which_face_is_swapped(chain: Chain, astronaut: Path) -> None:
    target = FACE / "three_faces_small_mid_large.jpg"
    before = bgr(target.read_bytes())
    _, one = chain.run(astronaut, target, format="png", faces="one")
    difference = changed(before, bgr(one))
    assert difference[20:277, 400:609].any()
    difference[20:277, 400:609] = False
    assert not difference.any()
    _, many = chain.run(astronaut, target, format="png", faces="many")
    for x0, x1 in ((20, 110), (200, 330), (400, 609)):
        assert changed(before, bgr(many))[:, x0:x1].any()
    for index, (x0, x1) in enumerate(((20, 110), (200, 330), (400, 609))):
        _, data = chain.run(astronaut, target, format="png", faces=str(index))
        difference = changed(before, bgr(data))
        assert difference[:, x0:x1].any()
        difference[:, x0:x1] = False
        assert not difference.any()
    result, _ = chain.run(astronaut, FACE / "same_face_twice.jpg")
    assert len(result.faces) == 2


@dataclass
class Shuffled:
    """A detector that tells its faces in another order."""

    detector: Detector
    order: int

    def warm(self) -> None: ...

    def detect(self, image: Pixels, *, size: int = 640, threshold: float = 0.5) -> list[Detection]:
        found = self.detector.detect(image, size=size, threshold=threshold)
        return found[self.order :] + found[: self.order]


@pytest.mark.slow
@pytest.mark.parametrize("faces", ["one", "many", "1"])
def test_face_02_the_detectors_order_changes_no_byte(
    tmp_path: Path, registry: Models, astronaut: Path, faces: str
) -> None:
    detector = registry.get("detector", Detector)
    written = set()
    for order in range(3):
        chain = Chain(tmp_path / str(order), Parts(registry, {"detector": Shuffled(detector, order)}))
        written.add(chain.run(astronaut, FACE / "three_faces_small_mid_large.jpg", format="png", faces=faces)[1])
    assert len(written) == 1


def test_face_03_several_source_faces_are_ambiguous(chain: Chain) -> None:
    with pytest.raises(AmbiguousSourceFaceError) as caught:
        chain.detect(chain.job(FACE / "source_two_faces.jpg", FACE / "one_face.jpg"))
    assert caught.value.context["faces"] == 2
    assert len(caught.value.context["boxes"]) == 2  # type: ignore[arg-type]
    left = chain.detect(chain.job(FACE / "source_two_faces.jpg", FACE / "one_face.jpg", source_face="0"))
    right = chain.detect(chain.job(FACE / "source_two_faces.jpg", FACE / "one_face.jpg", source_face="1"))
    assert (round(left.source_face.x, -1), round(right.source_face.x, -1)) == (40, 280)
    for chosen, x in (("largest", 40), ("0", 40), ("1", 280)):
        result, _ = chain.run(FACE / "source_two_faces.jpg", FACE / "one_face.jpg", source_face=chosen)
        assert [round(face.x, -1) for face in result.source_faces] == [x]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "axis", "edge"), [("face_cut_left_border.jpg", 1, 120), ("face_cut_top_border.jpg", 0, 160)]
)
def test_face_05_faces_cut_by_the_border(chain: Chain, name: str, axis: int, edge: int, astronaut: Path) -> None:
    before = bgr((FACE / name).read_bytes())
    try:
        _, data = chain.run(astronaut, FACE / name, format="png")
    except NoFaceInTargetError:
        return
    difference = changed(before, bgr(data))
    assert bgr(data).shape == before.shape
    assert not np.take(difference, range(edge, before.shape[axis]), axis=axis).any()


@dataclass
class Stub:
    """A detector, and a landmarker, that see one face where they are told to."""

    box: np.ndarray
    mesh: np.ndarray

    def warm(self) -> None: ...

    def detect(self, image: Pixels, *, size: int = 640, threshold: float = 0.5) -> list[Detection]:
        return [Detection(self.box, 0.9, five_points(self.mesh))]

    def locate(self, image: Pixels, points: Sequence[Floats], *, passes: int = 2) -> list[Landmarks]:
        return [Landmarks(self.mesh, 0.99) for _ in points]


@pytest.mark.slow
def test_face_05_a_box_that_leaves_the_picture_is_clipped(chain: Chain, registry: Models, astronaut: Path) -> None:
    found = chain.detect(chain.job(astronaut, FACE / "one_face.jpg"))
    with np.load(io.BytesIO(chain.store.get(found.landmarks.key)[0])) as landmarks:
        mesh: Floats = landmarks["target"][0]
    corner = np.append(mesh[:, :2].min(axis=0), 0)
    scale = 105 / np.ptp(mesh[:, 0])
    moved = ((mesh - corner) * scale + np.array([-35, 30, 0])).astype(np.float32)
    stub = Stub(np.array([-35, 30, 70, 150], np.float32), moved)
    seen = Chain(chain.root, Parts(registry, {"detector": stub, "landmarker": stub}))
    # the stub's mesh lies beside the astronaut's face as well: a source like that would be refused
    result, data = seen.run(astronaut, FACE / "one_face.jpg", format="png", unsuited_source="warn")
    (face,) = result.faces
    assert (face.x, face.y, face.width, face.height) == (-35, 30, 105, 120)
    before, after = bgr((FACE / "one_face.jpg").read_bytes()), bgr(data)
    assert after.shape == before.shape
    assert changed(before, after)[:, :71].any()
    assert not changed(before, after)[:, 100:].any(), "nothing is pasted on the other side"


@pytest.mark.slow
def test_face_07_what_is_no_usable_face(chain: Chain, astronaut: Path) -> None:
    with pytest.raises(FaceTooSmallError) as caught:
        chain.detect(chain.job(astronaut, FACE / "tiny_face_17px.jpg"))
    assert 10 <= float(caught.value.context["size"]) <= 20  # type: ignore[arg-type]
    assert caught.value.context["minimum"] == 20
    for name in ("cartoon_smiley.png", "face_occluded_all.jpg"):
        with pytest.raises(NoFaceInTargetError):
            chain.detect(chain.job(astronaut, FACE / name))
    with pytest.raises(FaceTooSmallError) as asked:
        chain.detect(chain.job(astronaut, FACE / "one_face.jpg", min_face=500))
    assert asked.value.context["minimum"] == 500


@pytest.mark.slow
@pytest.mark.parametrize("name", ["face_blurred.jpg", "face_very_dark.jpg", "face_occluded_mouth.jpg"])
def test_face_07_a_hard_face_is_named_or_refused(chain: Chain, name: str, astronaut: Path) -> None:
    try:
        result, data = chain.run(astronaut, FACE / name, format="png")
    except (NoFaceInTargetError, FaceTooSmallError):
        return
    before, after = bgr((FACE / name).read_bytes()).astype(int), bgr(data).astype(int)
    assert len(result.faces) == 1
    assert all(face.score >= 0.5 and face.width >= 20 and face.height >= 20 for face in result.faces)
    if name == "face_occluded_mouth.jpg":
        block = cv2.erode((before.max(axis=2) < 12).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
        assert block.sum() > 1000
        assert np.abs(after - before)[block].max() <= 6, "what hides the mouth stays over it"
