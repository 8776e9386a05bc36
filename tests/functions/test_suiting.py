"""Sources that do not suit the embedded swapper: refused at detect with the reason, unless the caller wants them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.context import Models
from shared.events.choices import Options, Pairing
from shared.models import build
from shared.models.cache import ModelCache
from shared.rejections import SourceUnsuitedError
from shared.settings import ModelSettings
from shared.vision.finder import find_faces
from shared.vision.protocols import Detector, Floats, Image, Landmarker
from shared.vision.unsuited import POOR, REASONS, reasons, refused
from tests.functions.chain import Chain, Parts
from tests.functions.pictures import bgr
from tests.unit.vision import drawn

TARGET = Path(__file__).parents[1] / "data" / "face" / "one_face.jpg"
Change = Callable[[Image, Floats], Image]


def disguised(image: Image, mesh: Floats) -> Image:
    return drawn.with_hand(drawn.with_glasses(image, mesh), mesh)


@pytest.fixture(scope="session")
def registry(model_cache: ModelCache) -> Models:
    for name in ("centerface", "face_mesh"):
        model_cache.ensure(build.chosen(ModelSettings()).model(name))
    return build.registry(replace(ModelSettings(), cache=model_cache.root))


@pytest.fixture
def chain(tmp_path: Path, registry: Models) -> Chain:
    return Chain(tmp_path / "objects", registry)


@pytest.fixture
def source(registry: Models, sample: Callable[[str], Path]) -> Callable[[Change], bytes]:
    """The astronaut, changed, as a PNG."""

    def make(change: Change) -> bytes:
        image = bgr(sample("astronaut").read_bytes()).astype(np.uint8)
        faces = find_faces(image, registry.get("detector", Detector), registry.get("landmarker", Landmarker))
        return cv2.imencode(".png", change(image, faces[0].mesh))[1].tobytes()

    return make


@pytest.mark.parametrize(
    ("change", "warning"), [(drawn.with_shadows, "source_shadowed"), (disguised, "source_hidden")], ids=POOR
)
def test_a_poor_source_is_refused_before_the_swap_and_swapped_when_told_to(
    chain: Chain, source: Callable[[Change], bytes], change: Change, warning: str
) -> None:
    picture = source(change)
    with pytest.raises(SourceUnsuitedError) as caught:
        chain.detect(chain.job(picture, TARGET))
    refusal = caught.value
    assert (refusal.code, refusal.status) == ("source_unsuited", 422)
    assert refusal.context == {"warnings": [warning], "source": 0, "field": "unsuited_source"}
    assert REASONS[warning] in refusal.detail
    assert warning in chain.run(picture, TARGET, unsuited_source="warn")[0].warnings


@pytest.mark.parametrize(
    ("change", "warning"), [(drawn.with_glasses, "source_glasses"), (drawn.with_hand, "source_mouth_covered")]
)
def test_a_weaker_source_is_refused_to_a_strict_caller_only(
    chain: Chain, source: Callable[[Change], bytes], change: Change, warning: str
) -> None:
    picture = source(change)
    assert warning in chain.run(picture, TARGET)[0].warnings
    with pytest.raises(SourceUnsuitedError) as caught:
        chain.detect(chain.job(picture, TARGET, unsuited_source="strict"))
    assert warning in caught.value.context["warnings"]  # type: ignore[operator]


@pytest.mark.parametrize("name", ["astronaut", "hanks"])
def test_no_ordinary_picture_is_refused_by_default(chain: Chain, sample: Callable[[str], Path], name: str) -> None:
    assert chain.detect(chain.job(sample(name), TARGET)).target_faces


@pytest.mark.slow
def test_every_face_of_a_group_may_be_a_source(chain: Chain, sample: Callable[[str], Path]) -> None:
    for index in range(6):
        assert chain.detect(chain.job(sample("t1"), TARGET, source_face=str(index))).target_faces


def test_a_learned_swapper_is_not_asked_about_light_and_laughs(
    chain: Chain, registry: Models, source: Callable[[Change], bytes]
) -> None:
    learned = Chain(chain.root, Parts(registry, {"learned": object()}))
    for how in ("refuse", "strict"):
        job = learned.job(source(drawn.with_shadows), TARGET, swapper="learned", unsuited_source=how)
        assert learned.detect(job).target_faces
    with pytest.raises(SourceUnsuitedError) as caught:
        learned.detect(learned.job(TARGET, TARGET, swapper="learned", unsuited_source="strict"))
    assert caught.value.context["warnings"] == ["source_small"]


def test_only_sources_that_are_used_are_asked_about(chain: Chain, source: Callable[[Change], bytes]) -> None:
    """The embedded swapper takes the most frontal of several pictures, and of a mapping those that are named."""
    job = chain.job(source(drawn.with_shadows), TARGET)
    plain = chain.put("x/plain", source(lambda image, _: image), "image/png")
    both = replace(job, source=(plain, job.source[0]))
    assert chain.detect(replace(both, options=Options(mapping=(Pairing(0, 0),)))).assigned == (0,)
    with pytest.raises(SourceUnsuitedError) as caught:
        chain.detect(replace(both, options=Options(mapping=(Pairing(1, 0),))))
    assert caught.value.context["source"] == 1


def test_every_warning_has_its_words() -> None:
    assert set(POOR) < set(REASONS)
    assert refused(("source_turned", "source_hidden"), "refuse") == ("source_hidden",)
    assert refused(("source_turned", "source_hidden"), "strict") == ("source_turned", "source_hidden")
    assert refused(("source_hidden",), "warn") == ()
    assert reasons(("source_small", "source_turned")).count(".") == 2
