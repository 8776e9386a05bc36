"""Moderation in the stages: what was sent and what was made, by each action, and what goes on record.

The stand-in moderator calls bright pictures unsafe; the reader is the real one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from functions.moderate import main as moderate
from functions.publish import main as publish
from shared.errors import JsonValue, ModelNotFoundError
from shared.events.choices import Options
from shared.events.payloads import Job, Media, ObjectRef, Result, Size
from shared.imaging import raw, shown
from shared.imaging.codec import Picture, Plane, decode, encode
from shared.imaging.probe import Limits
from shared.jobs import decisions, holds
from shared.jobs.decisions import Decision
from shared.jobs.holds import Hold, Review, ReviewNeededError
from shared.models import build
from shared.models.cache import ModelCache
from shared.models.registry import ModelRegistry
from shared.rejections import ContentRefusedError
from shared.settings import ModelSettings
from shared.tenancy.tenant import Policy, Tenant
from shared.vision.protocols import Image
from shared.vision.runtime import Runtime
from tests.functions.chain import JOB, Chain, Parts, StageContext
from tests.lettering import lettered, png
from tests.standins.moderators import catalogue
from tests.standins.tables import cache_over
from tests.unit.serving.support import App, event, until

DARK, BRIGHT = (np.full((120, 160, 3), level, np.uint8) for level in (40, 230))


@dataclass
class World:
    chain: Chain
    settings: ModelSettings

    def context(self, stage: str, **policy: object) -> StageContext:
        policy.setdefault("nsfw_threshold", 0.8)
        return replace(self.chain.context(stage), tenant=Tenant("demo", Policy(**policy)))  # type: ignore[arg-type]

    def job(self, source: Image = DARK, target: Image = DARK, alpha: Plane | None = None) -> Job:
        """`alpha`: of the target."""
        files = {"s": png(source), "t": encode(Picture(target, alpha, "png"), "png", 100)[0]}
        refs = [self.chain.put(f"{name}.png", data, "image/png") for name, data in files.items()]
        return Job(JOB, (refs[0],), refs[1], Options(format="png"))

    def moderate(self, job: Job, **policy: object) -> Job:
        return moderate.handle(job, self.context("moderate", **policy))

    def publish(self, job: Job, pixels: Image, alpha: Plane | None = None, **policy: object) -> tuple[Result, Image]:
        """The result, and its colours as it is seen on white."""
        ctx = self.context("publish", **policy)
        ref = replace(ctx.storage, stage="swap").save("pixels.npy", raw.pack(pixels, alpha), raw.CONTENT_TYPE)
        media = Media(JOB, job, ref, (), Size(pixels.shape[1], pixels.shape[0]))
        result = publish.handle(media, ctx)
        made = decode(self.chain.store.get(result.image.key)[0], Limits())
        return result, [*shown.views(made.pixels, made.alpha)][:2][-1]

    def decided(self, stage: str) -> list[tuple[str, str, str]]:
        found = decisions.of_stage(self.chain.store, "demo", JOB, stage)
        return [(one.picture, one.check, one.action) for one in found]

    def record(self, stage: str) -> tuple[Decision, ...]:
        return decisions.of_stage(self.chain.store, "demo", JOB, stage)


@pytest.fixture
def make(tmp_path: Path, model_cache: ModelCache, model_files: Callable[[str], object]) -> Callable[..., World]:
    def made(**settings: str) -> World:
        model_files("pp_ocr_v6_small")
        folder = tmp_path / f"tables{len(list(tmp_path.iterdir()))}"
        own = {"catalogue": str(catalogue(folder)), "moderator": "brightness"}
        chosen = ModelSettings(**{**own, **settings})  # type: ignore[arg-type]
        registry = ModelRegistry(build.chosen(chosen), cache_over(folder, model_cache), Runtime(threads=1))
        return World(Chain(folder / "objects", registry), chosen)

    return made


@pytest.fixture
def world(make: Callable[..., World]) -> World:
    return make()


def test_every_picture_that_was_sent_is_looked_at_and_on_record_with_its_model(world: World) -> None:
    job = world.job()
    assert world.moderate(job) == job
    assert world.decided("moderate") == [("source", "nsfw", "pass"), ("target", "nsfw", "pass")]
    for one in world.record("moderate"):
        assert (one.model, one.digest) == ("brightness", world.chain.models.digest("moderator"))
        assert len(one.digest) == 64
        assert 0 <= one.score < one.threshold == 0.8


def test_reject_ends_at_the_first_picture_and_says_which(world: World) -> None:
    with pytest.raises(ContentRefusedError) as refused:
        world.moderate(world.job(source=BRIGHT, target=BRIGHT))
    assert refused.value.context["picture"] == "source"
    assert float(str(refused.value.context["score"])) > float(str(refused.value.context["threshold"]))
    assert world.decided("moderate") == [("source", "nsfw", "reject")]


def test_the_tenants_threshold_counts(world: World) -> None:
    world.moderate(world.job(target=BRIGHT), nsfw_threshold=1.0)
    with pytest.raises(ContentRefusedError):
        world.moderate(world.job(target=DARK), nsfw_threshold=0.0)


def test_review_looks_at_everything_and_then_asks_a_person(world: World) -> None:
    with pytest.raises(ReviewNeededError) as asked:
        world.moderate(world.job(source=BRIGHT, target=BRIGHT), nsfw_action="review")
    assert asked.value.context == {"checks": ["nsfw"]}
    assert world.decided("moderate") == [("source", "nsfw", "review"), ("target", "nsfw", "review")]


def test_a_picture_to_reject_counts_more_than_one_to_review(world: World) -> None:
    target = lettered(((20, 40), "forbidden", 30), size=(300, 120), paper="gray")
    policy = {"nsfw_action": "review", "banned_words": ("forbidden",), "words_action": "reject"}
    with pytest.raises(ContentRefusedError):
        world.moderate(world.job(source=BRIGHT, target=target), **policy)
    assert world.decided("moderate")[0] == ("source", "nsfw", "review")


def test_what_a_person_let_pass_passes_both_looks(world: World) -> None:
    job = world.job(target=BRIGHT)
    with pytest.raises(ReviewNeededError):
        world.moderate(job, nsfw_action="review")
    approve(world, "moderate", "nsfw")
    assert world.moderate(job, nsfw_action="review") == job
    assert world.decided("moderate")[1] == ("target", "nsfw", "approved")
    result, pixels = world.publish(job, BRIGHT, nsfw_action="review")
    assert world.decided("publish") == [("finished", "nsfw", "approved")]
    assert result.warnings == ()
    assert (pixels == BRIGHT).all()


def test_a_person_who_let_one_thing_pass_is_asked_about_another(world: World) -> None:
    approve(world, "moderate", "words")
    with pytest.raises(ReviewNeededError):
        world.moderate(world.job(target=BRIGHT), nsfw_action="review")


def approve(world: World, stage: str, *checks: str) -> None:
    event = '{"specversion":"1.0","id":"e","source":"/wakeswap/intake","type":"t"}'
    hold = Hold("demo", JOB, stage, checks, "2026-01-01T00:00:00Z", event)
    holds.decide(world.chain.store, hold, Review("approved", "someone", "2026-01-01T00:00:00Z", "", checks))


def test_the_finished_picture_is_looked_at_too(world: World) -> None:
    job = world.moderate(world.job())
    with pytest.raises(ContentRefusedError) as refused:
        world.publish(job, BRIGHT)
    assert refused.value.context["picture"] == "finished"
    assert world.decided("publish") == [("finished", "nsfw", "reject")]
    assert not world.chain.store.list("tenants/demo/results/").objects, "nothing was published"
    with pytest.raises(ReviewNeededError):
        world.publish(job, BRIGHT, nsfw_action="review")


def test_blur_lets_the_job_go_on_and_blurs_the_whole_finished_picture(world: World) -> None:
    noise = np.random.default_rng(1).integers(180, 256, (240, 320, 3), np.uint8)
    job = world.moderate(world.job(), nsfw_action="blur")
    result, pixels = world.publish(job, noise, nsfw_action="blur")
    assert result.warnings == ("blurred_nsfw",)
    assert pixels.shape == noise.shape
    assert pixels.std() < noise.std() / 4


def test_blur_counts_what_was_found_in_what_was_sent(world: World) -> None:
    """The swapped picture may score lower than the one it was made from."""
    job = world.moderate(world.job(target=BRIGHT), nsfw_action="blur")
    result, pixels = world.publish(job, DARK + np.eye(120, 160, dtype=np.uint8)[..., None] * 100, nsfw_action="blur")
    assert world.decided("publish") == [("finished", "nsfw", "pass")]
    assert result.warnings == ("blurred_nsfw",)
    assert pixels.max() < 70


@pytest.mark.parametrize("colour", [DARK, np.zeros_like(DARK)], ids=["dark", "black"])
def test_what_only_alpha_shows_is_looked_at(world: World, colour: Image) -> None:
    """The colours are harmless; what is seen on a page is drawn by what shines through."""
    clear = np.full(colour.shape[:2], 10, np.uint8)
    with pytest.raises(ContentRefusedError) as refused:
        world.moderate(world.job(target=colour, alpha=clear))
    assert refused.value.context["picture"] == "target"
    assert len(world.record("moderate")) == 2, "one decision a picture, however often it was looked at"
    with pytest.raises(ContentRefusedError):
        world.publish(world.job(), colour, clear)
    opaque = np.full_like(clear, 255)
    world.publish(world.moderate(world.job(target=colour, alpha=opaque)), colour, opaque)


def test_colours_that_alpha_hides_are_looked_at(world: World) -> None:
    """Whoever drops the alpha sees them."""
    with pytest.raises(ContentRefusedError):
        world.moderate(world.job(target=BRIGHT, alpha=np.zeros(BRIGHT.shape[:2], np.uint8)))


def test_banned_words_that_only_alpha_shows_are_found_and_covered(world: World) -> None:
    text = lettered(((20, 20), "forbidden", 40), ((20, 200), "allowed", 40), size=(400, 300))
    black, alpha = np.zeros_like(text), 255 - text[:, :, 0]
    policy = {"banned_words": ("forbidden",), "nsfw_threshold": 1.0}
    with pytest.raises(ContentRefusedError):
        world.moderate(world.job(target=black, alpha=alpha), **policy)
    policy["words_action"] = "blur"
    job = world.moderate(world.job(target=black, alpha=alpha), **policy)
    result, pixels = world.publish(job, black, alpha, **policy)
    assert result.warnings == ("blurred_words",)
    assert (pixels[150:] == text[150:]).all()
    assert pixels[25:60, 30:200].std() < text[25:60, 30:200].std() / 2


def test_banned_words_are_refused_without_being_named(world: World) -> None:
    target = lettered(((20, 40), "A F0rbidden place", 30), size=(400, 120), paper="gray")
    with pytest.raises(ContentRefusedError) as refused:
        world.moderate(world.job(target=target), banned_words=("other", "forbidden"))
    context: dict[str, JsonValue] = refused.value.context
    assert (context["picture"], context["check"], context["words"]) == ("target", "words", [1])
    assert "orbidden" not in f"{refused.value.detail}{context}"
    stored = world.chain.store.get(f"tenants/demo/jobs/{JOB}/moderate/decisions.json")[0]
    assert b"orbidden" not in stored.lower()
    (found,) = [one for one in world.record("moderate") if one.action == "reject"]
    assert (found.model, found.words) == ("pp_ocr_v6_small", (1,))
    assert found.score > 0.8


def test_banned_words_are_blurred_where_they_stand_and_nowhere_else(world: World) -> None:
    picture = lettered(((20, 20), "forbidden", 40), ((20, 200), "allowed", 40), size=(400, 300), paper="gray")
    policy = {"banned_words": ("forbidden",), "words_action": "blur"}
    job = world.moderate(world.job(target=picture), **policy)
    result, pixels = world.publish(job, picture.copy(), **policy)
    assert result.warnings == ("blurred_words",)
    assert (pixels[150:] == picture[150:]).all()
    assert pixels[25:60, 30:200].std() < 25 < picture[25:60, 30:200].std()


def test_words_of_the_target_are_blurred_in_a_result_too_small_to_read(world: World) -> None:
    picture = lettered(((100, 100), "forbidden", 40), size=(1600, 1200), paper="gray")
    policy = {"banned_words": ("forbidden",), "words_action": "blur"}
    job = world.moderate(world.job(target=picture), **policy)
    small = np.ascontiguousarray(picture[::8, ::8])
    result, pixels = world.publish(job, small.copy(), **policy)
    assert result.warnings == ("blurred_words",)
    changed = np.argwhere((pixels != small).any(axis=2))
    assert changed.min(0).tolist() >= [8, 8]
    assert changed.max() < 50


def test_nobody_pays_for_reading_who_has_no_banned_words(world: World) -> None:
    registry = world.chain.models
    assert isinstance(registry, ModelRegistry)
    world.publish(world.moderate(world.job()), DARK)
    assert registry.residents.names() == ["brightness"]
    world.moderate(world.job(), banned_words=("x",))
    assert registry.residents.names() == ["brightness", "pp_ocr_v6_small"]


def test_moderation_is_off_only_by_the_platforms_setting(
    make: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    world = make(moderation="off")
    with caplog.at_level(logging.WARNING):
        moderate.setup(world.context("moderate"))  # type: ignore[arg-type]
    assert "WAKESWAP_MODERATION=off" in caplog.text
    job = world.moderate(world.job(target=BRIGHT), nsfw_threshold=0.0, banned_words=("x",))
    world.publish(job, BRIGHT, nsfw_threshold=0.0, banned_words=("x",))
    assert world.record("moderate") == world.record("publish") == ()
    registry = world.chain.models
    assert isinstance(registry, ModelRegistry)
    assert registry.residents.names() == []


def test_banned_words_without_a_reader_wait_for_one(make: Callable[..., World]) -> None:
    """Nothing passes unread because the operator took the reader away: the event is sent again until there is one."""
    world = make(reader="none")
    world.moderate(world.job())
    with pytest.raises(ModelNotFoundError):
        world.moderate(world.job(), banned_words=("x",))


def test_a_reference_picture_is_looked_at(world: World) -> None:
    job = world.job()
    reference: ObjectRef = world.chain.put("r.png", png(BRIGHT), "image/png")
    with pytest.raises(ContentRefusedError) as refused:
        world.moderate(replace(job, reference=reference))
    assert refused.value.context["picture"] == "reference"


@pytest.mark.slow
def test_a_second_family_is_one_table_and_one_setting(
    tmp_path: Path, model_cache: ModelCache, model_files: Callable[[str], object]
) -> None:
    """No code but the stand-in's own: the table is found by its folder, the model by its name."""
    model_files("open_nsfw")
    environ = {
        "WAKESWAP_CATALOGUE": str(catalogue(tmp_path)),
        "WAKESWAP_MODERATOR": "brightness",
        "WAKESWAP_MODEL_CACHE": str(cache_over(tmp_path, model_cache).root),
    }
    app = App("moderate", tmp_path / "objects", package="functions", **environ)
    until(app.is_ready, 60)
    world = World(Chain(tmp_path / "objects", Parts(None, {})), ModelSettings())  # type: ignore[arg-type]
    passed = app.deliver(event(world.job(), event_id="e-1"))
    refused = app.deliver(event(world.job(target=BRIGHT), event_id="e-2"))
    assert passed.headers["ce-type"] == "dev.wakeswap.moderate.completed.v1"
    assert refused.headers["ce-type"] == "dev.wakeswap.moderate.rejected.v1"
    assert {one.model for one in world.record("moderate")} == {"brightness"}
