"""Which faces are swapped and by whom, through the stages: real detection, stand-ins in the catalogue for the rest."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.context import Models
from shared.events.choices import Pairing
from shared.events.payloads import Job, ObjectRef
from shared.models.cache import ModelCache
from shared.models.choice import TenantModels
from shared.models.registry import ModelRegistry
from shared.rejections import (
    AmbiguousReferenceFaceError,
    ContentRefusedError,
    FaceTooSmallError,
    ModelForbiddenError,
    NoEmbedderError,
    NoFaceInReferenceError,
    NoFaceInTargetError,
    NoMatchingFaceError,
    UnusableOptionError,
)
from shared.storage import keys
from shared.tenancy.tenant import Policy, Tenant
from shared.vision import measured
from shared.vision.geometry import five_of_68
from shared.vision.protocols import Image as Pixels
from shared.vision.protocols import Masker, SourceFace, SwapOptions, Target
from shared.vision.runtime import Runtime
from tests.functions.chain import Chain, Parts
from tests.standins import detectors, embedders, maskers, swappers
from tests.standins.tables import cache_over, table, with_tables

FACE = Path(__file__).parents[1] / "data" / "face"
THREE, TWICE = FACE / "three_faces_small_mid_large.jpg", FACE / "same_face_twice.jpg"
GRID = np.stack([np.linspace(8, 56, 68), np.linspace(56, 8, 68)], axis=1).astype(np.float32)

pytestmark = pytest.mark.slow


def tables(folder: Path) -> list[str]:
    arcface, inswapper = "shared.vision.embedder.arcface:ArcFace", swappers.FAMILIES["inswapper"]
    fan = "shared.vision.landmarker.fan:Fan"
    likeness = embedders.build(folder / "embedder")
    pixels = {"size": 256, "mean": 0.0, "std": 255.0, "colour": "rgb"}
    return [
        table("likeness", "embedder", arcface, likeness, embedders.PARAMETERS),
        table("closed", "embedder", arcface, likeness, embedders.PARAMETERS, commercial="no"),
        table("xseg", "occluder", "shared.vision.masker.xseg:XSeg", maskers.xseg(folder), maskers.XSEG),
        table("bisenet", "parser", "shared.vision.masker.bisenet:BiSeNet", maskers.bisenet(folder), maskers.BISENET),
        table("fan", "refiner", fan, {"model": detectors.fan(folder, GRID, 0.9)}, pixels),
        table("unsure", "refiner", fan, {"model": detectors.fan(folder / "u", GRID, 0.3)}, pixels),
        table(
            "learned", "swapper", inswapper.adapter, swappers.build("inswapper", folder), inswapper.parameters,
            uses={"embedder": "likeness"},
        ),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def registry(
    model_cache: ModelCache, model_files: Callable[[str], object], tmp_path_factory: pytest.TempPathFactory
) -> ModelRegistry:
    for name in ("centerface", "face_mesh", "open_nsfw"):
        model_files(name)
    folder = tmp_path_factory.mktemp("models")
    catalog = with_tables(folder, tables(folder)).choosing(
        {"embedder": "likeness", "occluder": "xseg", "parser": "bisenet"}
    )
    return ModelRegistry(catalog, cache_over(folder, model_cache), Runtime(threads=1))


@pytest.fixture
def chain(tmp_path: Path, registry: ModelRegistry) -> Chain:
    return Chain(tmp_path / "objects", registry)


@pytest.fixture
def astronaut(sample: Callable[[str], Path]) -> bytes:
    return sample("astronaut").read_bytes()


@pytest.fixture
def guest(sample: Callable[[str], Path]) -> bytes:
    """One of the six of t1, by herself and larger."""
    image = cv2.imread(str(sample("t1")), cv2.IMREAD_COLOR)
    assert image is not None
    return png(cv2.resize(image[160:520, 410:626], None, fx=1.5, fy=1.5, interpolation=cv2.INTER_CUBIC))


def png(image: np.ndarray) -> bytes:
    return cv2.imencode(".png", image)[1].tobytes()


def bgr(data: bytes) -> np.ndarray:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return image


def more(chain: Chain, name: str, data: bytes) -> ObjectRef:
    return chain.put(f"x/{name}", data, "image/png" if data.startswith(b"\x89PNG") else "image/jpeg")


def by_reference(chain: Chain, source: bytes, target: Path | bytes, reference: bytes, **options: object) -> Job:
    job = chain.job(source, target, faces="reference", format="png", **options)
    return replace(job, reference=more(chain, "r", reference))


def lefts(chain: Chain, job: Job) -> list[int]:
    """The chosen faces by the hundreds of pixels at which they begin: 0, 2 and 4 on THREE, 0 and 3 on TWICE."""
    return [int(face.x // 100) for face in chain.detect(job).target_faces]


# by reference


def test_face_02_all_faces_of_the_person_on_the_reference(chain: Chain, astronaut: bytes) -> None:
    """Three copies of a face, the middle one in another mood: the other two are the reference's at 0.8."""
    job = by_reference(chain, astronaut, TWICE, (FACE / "one_face.jpg").read_bytes(), similarity=0.8)
    assert lefts(chain, job) == [0, 3]
    result = chain.publish(chain.swap(chain.detect(chain.moderate(job))))
    assert len(result.faces) == 2
    three = by_reference(chain, astronaut, THREE, astronaut, similarity=0.8)
    assert lefts(chain, three) == [0, 4]
    assert lefts(chain, replace(three, options=replace(three.options, similarity=0.3))) == [0, 2, 4]


def test_face_02_one_of_a_group(chain: Chain, astronaut: bytes, guest: bytes, sample: Callable[[str], Path]) -> None:
    before = bgr(sample("t1").read_bytes())
    job = by_reference(chain, astronaut, sample("t1"), guest, similarity=0.8)
    faces = chain.detect(job)
    (face,) = faces.target_faces
    result = chain.publish(chain.swap(faces))
    changed = (bgr(chain.store.get(result.image.key)[0]) != before).any(axis=2)
    _, columns = np.nonzero(changed)
    assert abs(columns.mean() - (face.x + face.width / 2)) < face.width / 4
    assert np.ptp(columns) < face.width * 2
    assert 460 < face.x < 470


def test_face_02_nobody_like_the_reference(chain: Chain, astronaut: bytes, guest: bytes) -> None:
    with pytest.raises(NoMatchingFaceError) as caught:
        chain.detect(by_reference(chain, astronaut, THREE, guest, similarity=0.9))
    assert caught.value.context["minimum"] == 0.9
    assert 0 < float(caught.value.context["similarity"]) < 0.9  # type: ignore[arg-type]


def test_face_02_the_reference_shows_one_face(chain: Chain, astronaut: bytes) -> None:
    for name, error in (("no_face.png", NoFaceInReferenceError), ("source_two_faces.jpg", AmbiguousReferenceFaceError)):
        with pytest.raises(error):
            chain.detect(by_reference(chain, astronaut, THREE, (FACE / name).read_bytes()))
    with pytest.raises(NoFaceInReferenceError):
        chain.detect(replace(chain.job(astronaut, THREE, faces="reference"), reference=None))


def test_small_and_unsure_faces_are_no_matches(chain: Chain, astronaut: bytes) -> None:
    assert lefts(chain, by_reference(chain, astronaut, THREE, astronaut, similarity=0.8, min_face=60)) == [4]
    with pytest.raises(FaceTooSmallError):
        chain.detect(by_reference(chain, astronaut, THREE, astronaut, similarity=0.8, min_face=400))


def test_without_a_recogniser_the_job_ends_before_a_picture_is_read(
    tmp_path: Path, model_cache: ModelCache, registry: ModelRegistry, astronaut: bytes
) -> None:
    bare = ModelRegistry(with_tables(tmp_path, []), model_cache, Runtime(threads=1))
    for models, context in ((bare, {}), (licensed(registry, "closed", "commercial-only"), FORBIDDEN)):
        chain = Chain(tmp_path / "objects", models)
        job = by_reference(chain, astronaut, THREE, astronaut)
        gone = replace(job, source=(replace(job.source[0], key=keys.inbox("demo", "gone")),))
        with pytest.raises(NoEmbedderError) as caught:
            chain.detect(gone)
        assert (caught.value.code, caught.value.status, caught.value.context) == ("no_embedder", 422, context)
    chain = Chain(tmp_path / "objects", licensed(registry, "closed", "research"))
    assert lefts(chain, by_reference(chain, astronaut, THREE, astronaut, similarity=0.8)) == [0, 4]


FORBIDDEN = {"model": "closed", "licence": "tests", "policy": "commercial-only"}


def licensed(registry: ModelRegistry, embedder: str, licences: str) -> Models:
    """The models as a job of a tenant with this policy has them, another recogniser chosen."""
    catalog = registry._catalog.choosing({"embedder": embedder})
    chosen = ModelRegistry(catalog, registry._cache, registry._runtime)
    return TenantModels(chosen, catalog, Policy(licences=licences))


def test_the_reference_is_looked_at_once_per_content(
    tmp_path: Path, registry: ModelRegistry, astronaut: bytes, guest: bytes
) -> None:
    @dataclass
    class Counting:
        calls: list[int] = field(default_factory=list)

        def warm(self) -> None: ...

        def embed(self, image: Pixels, points: Sequence[np.ndarray]) -> np.ndarray:
            self.calls.append(len(points))
            return np.ones((len(points), 512), np.float32)

    counting = Counting()
    chain = Chain(tmp_path / "objects", Parts(registry, {"counting": counting}, {"embedder": "counting"}))
    for reference in (astronaut, astronaut, guest):
        chain.detect(by_reference(chain, astronaut, THREE, reference))
    assert counting.calls == [1, 3, 3, 1, 3]


# by index, size and score


@pytest.mark.parametrize(("order", "expected"), [("position", [0, 2, 4]), ("size", [4, 2, 0]), ("score", None)])
def test_face_02_an_index_counts_in_the_asked_order(
    chain: Chain, astronaut: bytes, order: str, expected: list[int] | None
) -> None:
    every = chain.detect(chain.job(astronaut, THREE)).target_faces
    if expected is None:
        expected = [int(face.x // 100) for face in sorted(every, key=lambda face: -face.score)]
    for index, left in enumerate(expected):
        assert lefts(chain, chain.job(astronaut, THREE, faces=str(index), order=order)) == [left]


def test_faces_that_are_not_sure_enough_are_left_out_and_still_counted(chain: Chain, astronaut: bytes) -> None:
    faces = chain.detect(chain.job(astronaut, THREE)).target_faces
    weakest, middle, _ = sorted(face.score for face in faces)
    limit = (weakest + middle) / 2
    sure = [int(face.x // 100) for face in faces if face.score > limit]
    assert lefts(chain, chain.job(astronaut, THREE, min_score=limit)) == sure
    for index, face in enumerate(faces):
        job = chain.job(astronaut, THREE, faces=str(index), min_score=limit)
        if face.score > limit:
            assert lefts(chain, job) == [int(face.x // 100)]
        else:
            with pytest.raises(NoFaceInTargetError) as caught:
                chain.detect(job)
            assert caught.value.context == {"score": face.score, "minimum": limit}


# several sources


def test_a_mapping_is_each_source_s_own_swap(chain: Chain, astronaut: bytes, guest: bytes) -> None:
    """Two sources on two of three faces: the same pixels as one swap after the other."""
    pairs = (Pairing(1, 2), Pairing(0, 0))
    job = chain.job(astronaut, THREE, format="png", mapping=pairs)
    job = replace(job, source=(job.source[0], more(chain, "s2", guest)))
    faces = chain.detect(job)
    assert [int(face.x // 100) for face in faces.target_faces] == [0, 4]
    assert (faces.assigned, len(faces.source_faces)) == ((0, 1), 2)
    result = chain.publish(chain.swap(faces))
    together = bgr(chain.store.get(result.image.key)[0])
    single = bgr(THREE.read_bytes()).copy()
    for source, index, columns in ((astronaut, "0", slice(0, 200)), (guest, "2", slice(380, 640))):
        alone = bgr(chain.run(source, THREE, format="png", faces=index)[1])
        single[:, columns] = alone[:, columns]
    assert np.array_equal(together, single)


def test_one_source_may_stand_at_several_targets(chain: Chain, astronaut: bytes) -> None:
    job = chain.job(astronaut, THREE, format="png", mapping=(Pairing(0, 0), Pairing(0, 1), Pairing(0, 2)))
    mapped = chain.publish(chain.swap(chain.detect(job)))
    _, plain = chain.run(astronaut, THREE, format="png")
    assert chain.store.get(mapped.image.key)[0] == plain


def test_a_mapping_of_a_face_that_is_not_there(chain: Chain, astronaut: bytes) -> None:
    with pytest.raises(NoFaceInTargetError) as caught:
        chain.detect(chain.job(astronaut, THREE, mapping=(Pairing(0, 3),)))
    assert caught.value.context == {"faces": 3}
    with pytest.raises(FaceTooSmallError):
        chain.detect(chain.job(astronaut, THREE, mapping=(Pairing(0, 0),), min_face=60))


class Named(str):
    """An identity that is nothing but its name."""

    warnings: tuple[str, ...] = ()


@dataclass
class Recorder:
    """A swapper that notes what it is given."""

    takes_maskers = True
    prepared: list[list[SourceFace]] = field(default_factory=list)
    swapped: list[list[Target]] = field(default_factory=list)
    options: list[SwapOptions] = field(default_factory=list)
    maskers: list[list[Masker]] = field(default_factory=list)

    def warm(self) -> None: ...

    def prepare(self, sources: Sequence[SourceFace]) -> Named:
        self.prepared.append(list(sources))
        return Named(f"identity {len(self.prepared)}")

    def swap(
        self, frame: Pixels, targets: Sequence[Target], options: SwapOptions, maskers: Sequence[Masker] = ()
    ) -> None:
        self.swapped.append(list(targets))
        self.options.append(options)
        self.maskers.append(list(maskers))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def recording(tmp_path: Path, registry: ModelRegistry, recorder: Recorder) -> Chain:
    """Under a name of its own, so that no test meets the identities of another."""
    parts = Parts(registry, {tmp_path.name: recorder}, {"name": tmp_path.name})
    return Chain(tmp_path / "objects", parts)


def swap(chain: Chain, job: Job) -> None:
    """With the recorder as the job's swapper."""
    assert isinstance(chain.models, Parts)
    chain.swap(chain.detect(replace(job, options=replace(job.options, swapper=chain.models.roles["name"]))))


def test_several_sources_are_one_identity_made_once(
    recording: Chain, recorder: Recorder, astronaut: bytes, guest: bytes
) -> None:
    job = recording.job(astronaut, THREE)
    swap(recording, replace(job, source=(job.source[0], more(recording, "s2", guest))))
    (sources,) = recorder.prepared
    assert [len(source.image) for source in sources] == [512, 540]
    assert [target.identity for target in recorder.swapped[0]] == ["identity 1"] * 3
    assert len({target.mesh.tobytes() for target in recorder.swapped[0]}) == 3


def test_an_identity_is_kept_by_content(recording: Chain, recorder: Recorder, astronaut: bytes, guest: bytes) -> None:
    both = (FACE / "source_two_faces.jpg").read_bytes()
    for source, face in ((astronaut, "one"), (astronaut, "one"), (guest, "one"), (both, "0"), (both, "1"), (both, "0")):
        swap(recording, recording.job(source, THREE, source_face=face))
    made = [targets[0].identity for targets in recorder.swapped]
    assert made == [f"identity {n}" for n in (1, 1, 2, 3, 4, 3)]
    job = recording.job(astronaut, THREE)
    mapped = replace(
        job,
        source=(job.source[0], more(recording, "s2", guest)),
        options=replace(job.options, mapping=(Pairing(1, 0), Pairing(0, 1), Pairing(1, 2))),
    )
    swap(recording, mapped)
    assert [target.identity for target in recorder.swapped[-1]] == ["identity 2", "identity 1", "identity 2"]


def test_another_tenant_meets_no_identity_of_this_one(recording: Chain, recorder: Recorder, astronaut: bytes) -> None:
    from functions.swap.main import handle

    assert isinstance(recording.models, Parts)
    faces = recording.detect(recording.job(astronaut, THREE, swapper=recording.models.roles["name"]))
    for name in ("demo", "other", "demo"):
        context = recording.context("swap")
        context.tenant = Tenant(name)
        handle(faces, context)
    assert len(recorder.prepared) == 2


# what a learned swapper is told


def test_a_learned_swapper_gets_its_options_and_maskers(recording: Chain, recorder: Recorder, astronaut: bytes) -> None:
    swap(recording, recording.job(astronaut, THREE))
    swap(
        recording,
        recording.job(
            astronaut, THREE, boost=512, colour_match=True, masks=("box", "region", "occlusion"), mask_blur=0.1,
            mask_padding=(0.1, 0.2, 0.0, 0.4), eyes="source", shape=0.25,
        ),
    )  # fmt: skip
    swap(
        recording, recording.job(astronaut, THREE, masks=("region",), mask_blur=0.1, mask_padding=(0.1, 0.2, 0.0, 0.4))
    )
    assert recorder.options == [
        SwapOptions(),
        SwapOptions("source", 0.25, 512, True, 0.1, (0.1, 0.2, 0.0, 0.4)),
        SwapOptions(mask_blur=0.0, mask_padding=(0, 0, 0, 0)),
    ]
    kinds = [[type(masker).__name__ for masker in found] for found in recorder.maskers]
    assert kinds == [[], ["XSeg", "BiSeNet"], ["BiSeNet"]]


def test_a_learned_swapper_end_to_end(chain: Chain, astronaut: bytes) -> None:
    """The stand-in for inswapper, boosted and masked: every face changes, the rest of the picture does not."""
    before = bgr(THREE.read_bytes())
    options = {"swapper": "learned", "boost": 256, "masks": ("box", "occlusion"), "colour_match": True}
    result, data = chain.run(astronaut, THREE, format="png", **options)
    changed = (bgr(data) != before).any(axis=2)
    for face in result.faces:
        y, x = int(face.y), int(face.x)
        assert changed[y : y + int(face.height), x : x + int(face.width)].mean() > 0.3
    assert not changed[:, 115:200].any()
    assert not changed[:, 345:380].any()


def test_an_option_that_the_model_cannot_honour_is_the_caller_s_fault(chain: Chain, astronaut: bytes) -> None:
    from functions.swap import main

    faces = chain.detect(chain.job(astronaut, THREE, swapper="learned", boost=256))
    wrong = replace(faces, request=replace(faces.request, options=replace(faces.request.options, boost=320)))
    with pytest.raises(UnusableOptionError) as caught:
        main.handle(wrong, chain.context("swap"))
    assert (caught.value.status, caught.value.context) == (422, {"field": "boost"})


def test_masks_are_held_against_the_tenant_s_licences(
    tmp_path: Path, registry: ModelRegistry, astronaut: bytes
) -> None:
    catalog = registry._catalog
    closed = replace(catalog, models={**catalog.models, "xseg": replace(catalog.models["xseg"], commercial="no")})
    chain = Chain(tmp_path / "objects", TenantModels(registry, closed, Policy()))
    faces = chain.detect(chain.job(astronaut, THREE, swapper="learned", masks=("occlusion",)))
    with pytest.raises(ModelForbiddenError) as caught:
        chain.swap(faces)
    assert caught.value.context["model"] == "xseg"
    for changed in ({"masks": ("region",)}, {"swapper": "mesh"}):
        chain.swap(replace(faces, request=replace(faces.request, options=replace(faces.request.options, **changed))))


def test_no_masker_is_loaded_for_the_embedded_swapper(
    tmp_path: Path, registry: ModelRegistry, astronaut: bytes
) -> None:
    fresh = ModelRegistry(registry._catalog, registry._cache, registry._runtime)
    masked = Chain(tmp_path / "a", fresh).run(astronaut, THREE, format="png", masks=("occlusion", "region"))
    plain = Chain(tmp_path / "b", fresh).run(astronaut, THREE, format="png")
    assert masked[1] == plain[1]
    loaded = {slot.name for slot in fresh.residents._slots.values() if slot.adapter is not None}
    assert loaded >= {"centerface", "face_mesh"}
    assert not loaded & {"xseg", "bisenet"}


# finer points


def test_five_points_come_from_a_finer_model_where_it_is_sure(
    tmp_path: Path, registry: ModelRegistry, recorder: Recorder, astronaut: bytes
) -> None:
    for refiner, found in (("fan", True), ("unsure", False)):
        name = f"{tmp_path.name}-{refiner}"
        catalog = registry._catalog.choosing({"refiner": refiner})
        chosen = ModelRegistry(catalog, registry._cache, registry._runtime)
        chain = Chain(tmp_path / refiner, Parts(chosen, {name: recorder}))
        faces = chain.detect(chain.job(astronaut, THREE, swapper=name))
        sources, targets = measured.read(chain.store.get(faces.landmarks.key)[0])
        chain.swap(faces)
        given = [face.points for face in (*recorder.prepared[-1], *recorder.swapped[-1])]
        if not found:
            assert given == [None] * 4
            continue
        assert [len(targets), len(sources)] == [3, 1]
        face = faces.source_faces[0]
        centre = np.array([face.x + face.width / 2, face.y + face.height / 2])
        reach = max(face.width, face.height) / 195
        assert given[0] is not None
        local = five_of_68(GRID * 4 - 128) * reach
        assert np.allclose(np.hypot(*(given[0] - centre).T), np.hypot(*local.T), atol=1), "turned with the face"
        assert [points.tolist() for points in given[1:] if points is not None] == targets.points.tolist()


# what stages of another age say, and what must be looked at


def test_landmarks_of_an_older_detect_are_understood(
    recording: Chain, recorder: Recorder, astronaut: bytes, guest: bytes
) -> None:
    assert isinstance(recording.models, Parts)
    job = recording.job(guest, THREE, swapper=recording.models.roles["name"])
    faces = recording.detect(replace(job, source=(job.source[0], more(recording, "s2", astronaut))))
    sources, targets = measured.read(recording.store.get(faces.landmarks.key)[0])
    data = io.BytesIO()
    np.savez(data, source=sources.meshes[1], target=targets.meshes)
    old = recording.context("detect").storage.save("old.npz", data.getvalue(), "application/octet-stream")
    media = recording.swap(replace(faces, landmarks=old, source=1, source_faces=()))
    assert media.source_faces == (faces.source_face,)
    (sources_given,) = recorder.prepared
    assert [len(source.image) for source in sources_given] == [512]
    assert [target.points for target in recorder.swapped[0]] == [None] * 3


def test_the_reference_is_moderated_too(chain: Chain, astronaut: bytes) -> None:
    from functions.moderate.main import handle

    job, context = by_reference(chain, astronaut, THREE, astronaut), chain.context("moderate")
    assert handle(job, context) == job
    seen: list[int] = []

    @dataclass
    class Third:
        def warm(self) -> None: ...

        def score(self, image: Pixels) -> float:
            seen.append(len(image))
            return 0.9 if len(seen) == 3 else 0.1

    context.models = Parts(chain.models, {"moderator": Third()})
    with pytest.raises(ContentRefusedError) as caught:
        handle(job, context)
    assert caught.value.context["picture"] == "reference"
