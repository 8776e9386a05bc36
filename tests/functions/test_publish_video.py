"""The end of a video: looked at once more, put among the results as it is, and told with its numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from functions.moderate import main as moderate
from functions.publish import main as publish
from functions.publish import video as of_video
from shared.events.choices import Options
from shared.events.payloads import Job, ObjectRef, Result, Size, Video
from shared.jobs import decisions
from shared.jobs.holds import ReviewNeededError
from shared.rejections import ContentRefusedError
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore
from shared.tenancy.tenant import Policy, Tenant
from tests.functions.chain import JOB, Parts, StageContext

SIZE = (96, 64)
FRAMES = 60
BRIGHT_FROM, BRIGHT_TO = 20, 30


@dataclass
class Brightness:
    """A moderator to which bright pictures are unsafe; it remembers what it saw."""

    seen: list[float] = field(default_factory=list)

    def score(self, image: np.ndarray) -> float:
        self.seen.append(float(image.mean()) / 255)
        return self.seen[-1]


def scenes(path: Path, codec: str = "libx264", bright: int = 235) -> Path:
    """Dark, ten frames bright, and dark again; a key frame with each scene, as encoders of ours set them."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=Fraction(25))
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        stream.codec_context.gop_size = 250
        for number in range(FRAMES):
            level = bright if BRIGHT_FROM <= number < BRIGHT_TO else 30
            frame = av.VideoFrame.from_ndarray(np.full((SIZE[1], SIZE[0], 3), level, np.uint8), format="rgb24")
            frame = frame.reformat(format="yuv420p")
            cut = number in (0, BRIGHT_FROM, BRIGHT_TO)
            frame.pts = number
            frame.pict_type = av.video.frame.PictureType.I if cut else av.video.frame.PictureType.NONE
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def animated(path: Path) -> Path:
    shades = [235 if BRIGHT_FROM <= number < BRIGHT_TO else 30 for number in range(FRAMES)]
    frames = [Image.new("RGB", SIZE, (shade,) * 3) for shade in shades]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=40)
    return path


@dataclass
class World:
    root: Path
    eye: Brightness = field(default_factory=Brightness)
    moderated: bool = True

    def __post_init__(self) -> None:
        self.store = LocalStore(self.root)

    def context(self, stage: str, **policy: object) -> StageContext:
        roles = {"moderator": "brightness"} if self.moderated else {}
        models = Parts(None, {"brightness": self.eye, "moderator": self.eye}, roles)  # type: ignore[arg-type]
        context = StageContext(TenantStore(self.store, "demo", JOB, stage), models)
        context.tenant = Tenant("demo", Policy(**policy))  # type: ignore[arg-type]
        return context

    def video(self, path: Path, content_type: str) -> Video:
        data = path.read_bytes()
        key = self.store.put(keys.job("demo", JOB, "assemble", path.name), data).key
        ref = ObjectRef(key, hashlib.sha256(data).hexdigest(), len(data), content_type)
        job = Job(JOB, (ref,), ref, Options(), origin="upload", media="video")
        return Video(JOB, job, ref, Size(*SIZE), 2.4, FRAMES, 50, 10, (), ("truncated",), "cpu")

    def publish(self, path: Path, content_type: str = "video/mp4", **policy: object) -> Result:
        return publish.handle(self.video(path, content_type), self.context("publish", **policy))

    def results(self) -> list[str]:
        return [entry.key for entry in self.store.list(keys.result("demo", "x")[:-1]).objects]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def test_a_video_is_put_among_the_results_as_it_is(world: World, tmp_path: Path) -> None:
    path = scenes(tmp_path / "dark.mp4", bright=40)
    result = world.publish(path)
    assert result.image.key == keys.result("demo", f"{JOB}.mp4")
    assert world.store.get(result.image.key)[0] == path.read_bytes()
    assert (result.media, result.seconds, result.width, result.height) == ("video", 2.4, *SIZE)
    assert (result.frames, result.frames_swapped, result.frames_without_face) == (FRAMES, 50, 10)
    assert (result.origin, result.warnings, result.provider) == ("upload", ("truncated",), "cpu")
    assert result.link.startswith("file:")
    (decided,) = decisions.of_stage(world.store, "demo", JOB, "publish")
    assert (decided.picture, decided.action, decided.score) == ("finished", "pass", round(max(world.eye.seen), 4))


@pytest.mark.parametrize("action", ["reject", "blur"])
@pytest.mark.parametrize("kind", ["mp4", "gif", "webp", "png"])
def test_a_short_scene_in_the_middle_refuses_it_and_a_blur_would_too(
    world: World, tmp_path: Path, kind: str, action: str
) -> None:
    types = {"mp4": "video/mp4", "gif": "image/gif", "webp": "image/webp", "png": "image/apng"}
    path = tmp_path / f"scenes.{kind}"
    made = scenes(path) if kind == "mp4" else animated(path)
    with pytest.raises(ContentRefusedError):
        world.publish(made, types[kind], nsfw_threshold=0.8, nsfw_action=action)
    assert world.results() == []
    (decided,) = decisions.of_stage(world.store, "demo", JOB, "publish")
    assert (decided.picture, decided.action) == ("finished", "reject")


def test_a_person_may_have_to_look(world: World, tmp_path: Path) -> None:
    with pytest.raises(ReviewNeededError):
        world.publish(scenes(tmp_path / "scenes.mp4"), nsfw_threshold=0.8, nsfw_action="review")
    assert world.results() == []


def test_no_more_frames_are_looked_at_than_that(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_video, "SAMPLES", 2)
    world.publish(scenes(tmp_path / "scenes.mp4", bright=40))
    world.publish(animated(tmp_path / "scenes.gif"), "image/gif", nsfw_threshold=1.0)
    assert len(world.eye.seen) == 4


def test_where_nothing_is_moderated_nothing_is_decoded(world: World, tmp_path: Path) -> None:
    world.moderated = False
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video at all")
    assert world.publish(broken).image.size == 15


def test_of_a_video_moderate_looks_at_the_pictures_that_were_sent_only(world: World) -> None:
    picture = world.root.parent / "source.png"
    Image.new("RGB", SIZE, (30, 30, 30)).save(picture)
    data = picture.read_bytes()
    key = world.store.put(keys.inbox("demo", "source.png"), data).key
    source = ObjectRef(key, hashlib.sha256(data).hexdigest(), len(data), "image/png")
    target = ObjectRef(keys.inbox("demo", "gone.mp4"), "0" * 64, 1, "video/mp4")
    context = world.context("moderate")
    models = context.models
    assert isinstance(models, Parts)
    models.parts = {**models.parts, "mesh": object()}
    moderate.handle(Job(JOB, (source,), target, media="video", reference=source), context)
    made = decisions.of_stage(world.store, "demo", JOB, "moderate")
    assert [one.picture for one in made] == ["source", "reference"]
