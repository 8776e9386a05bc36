"""A video divided and put together again: each frame at its time, in whatever order segments come, whatever is lost."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from shared.jobs import film
from shared.jobs.film import open_plan
from shared.rejections import MediaTruncatedError, ObjectGoneError, VideoTooLongError
from shared.storage import keys
from shared.tenancy.tenant import Policy
from tests.functions.chain import JOB
from tests.functions.films import Films
from tests.unit.video.made import Recipe, make, packets, times

FRAMES = 150
RECIPE = Recipe(ticks=tuple(range(0, FRAMES * 512, 512)), keys=25, audio=("aac",), personal=False)
"""Six seconds at 25 frames a second, a key frame each second."""


@pytest.fixture
def films(tmp_path: Path) -> Films:
    return Films(tmp_path / "store")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("made") / "target.mp4", RECIPE)


def written(films: Films, ref_key: str, tmp_path: Path) -> Path:
    films.store.download(ref_key, tmp_path / "out.mp4")
    return tmp_path / "out.mp4"


def test_a_video_comes_back_with_every_frame_at_its_time(films: Films, target: Path, tmp_path: Path) -> None:
    first = films.split(films.job(target))
    assert [segment.index for segment in first] == [0, 1, 2]
    assert len(open_plan(films.context("x").storage.load(first[0].plan)).parts) == 6
    (video,) = films.run(first)
    assert (video.frames, video.frames_swapped, video.frames_without_face) == (FRAMES, 6, FRAMES - 6)
    assert (video.size.width, video.size.height, video.seconds) == (96, 64, 6.0)
    assert sorted(films.worked) == list(range(6)), "each once"
    out = written(films, video.video.key, tmp_path)
    assert times(out) == times(target)
    assert packets(out, "audio") == packets(target, "audio")
    assert video.video.content_type == "video/mp4"


def test_split_again_asks_for_the_same_and_divides_nothing_anew(films: Films, target: Path) -> None:
    job = films.job(target)
    first = films.split(job)
    films.store.delete(job.target.key)
    assert films.split(job) == first


def test_clips_that_are_gone_are_asked_for_again_and_no_others(films: Films, target: Path) -> None:
    segments = films.split(films.job(target))
    plan = open_plan(films.context("x").storage.load(segments[0].plan))
    clips = [films.work(segment) for segment in segments[:3]]
    rest = [one for clip in clips for one in films.assemble(clip)]
    clips += [films.work(segment) for segment in rest]  # type: ignore[arg-type]
    for clip in clips[3:5]:
        films.assemble(clip)
    for index in (1, 4):
        films.store.delete(keys.job("demo", JOB, "swap", f"clip.{index}.mkv"))
    lost = films.assemble(clips[5])
    assert [one.index for one in lost] == [1, 4]  # type: ignore[union-attr]
    films.worked.clear()
    assert films.assemble(films.work(lost[0]), "again-1") == ()  # type: ignore[arg-type]
    (video,) = films.assemble(films.work(lost[1]), "again-4")  # type: ignore[arg-type]
    assert films.worked == [1, 4]
    assert video.frames == plan.facts.frames  # type: ignore[union-attr]


def test_without_the_target_there_is_nothing_to_join_with(films: Films, target: Path) -> None:
    job = films.job(target)
    segments = list(films.split(job))
    films.store.delete(job.target.key)
    with pytest.raises(ObjectGoneError):
        films.run(segments)


@pytest.mark.parametrize("faces", ["one", "0"])
def test_faces_chosen_by_who_they_are_begin_with_one_segment(films: Films, target: Path, faces: str) -> None:
    first = films.split(films.job(target, faces=faces))
    assert [segment.index for segment in first] == [0]
    following = films.assemble(films.work(first[0]))
    assert [segment.index for segment in following] == [1, 2, 3]  # type: ignore[union-attr]


def test_what_a_tenant_may_not_send_is_refused_before_it_is_divided(tmp_path: Path, target: Path) -> None:
    films = Films(tmp_path / "store", Policy(max_seconds=5))
    with pytest.raises(VideoTooLongError):
        films.split(films.job(target))
    assert films.store.list(keys.job("demo", JOB, film.SPLIT, "x")[:-1]).objects == ()


def test_a_video_that_breaks_off_is_refused_or_finished_as_asked(tmp_path: Path) -> None:
    whole = make(
        tmp_path / "whole.mkv", Recipe(container="mkv", ticks=RECIPE.ticks, time_base=RECIPE.time_base, keys=25)
    )
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 3 // 5])
    films = Films(tmp_path / "refusing")
    with pytest.raises(MediaTruncatedError) as refused:
        films.split(films.job(cut, "video/x-matroska"))
    assert refused.value.context["field"] == "damaged"
    films = Films(tmp_path / "finishing")
    (video,) = films.run(films.split(films.job(cut, "video/x-matroska", damaged="finish")))
    assert "truncated" in video.warnings
    assert 0 < video.frames < FRAMES
    films.store.download(video.video.key, tmp_path / "out.mkv")
    assert len(times(tmp_path / "out.mkv")) == video.frames


@pytest.mark.parametrize("kind", ["gif", "webm"])
def test_another_container_is_written_as_asked(films: Films, target: Path, tmp_path: Path, kind: str) -> None:
    (video,) = films.run(films.split(films.job(target, format=kind)))
    assert video.video.content_type == {"gif": "image/gif", "webm": "video/webm"}[kind]
    films.store.download(video.video.key, tmp_path / f"out.{kind}")
    found = times(tmp_path / f"out.{kind}")
    assert len(found) == FRAMES
    assert abs(found[-1] - found[0] - Fraction(FRAMES - 1, 25)) < Fraction(1, 25)
