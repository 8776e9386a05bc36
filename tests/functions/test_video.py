"""Videos through the stages, one after the other: the field's cases, and what a result says of its frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shared.context import Models
from shared.rejections import ContentRefusedError, MediaTruncatedError, NoFaceInTargetError
from shared.tenancy.tenant import Policy, Tenant
from tests.functions.chain import Parts
from tests.functions.film import Film, pictures, told

CASES = Path(__file__).parents[1] / "data/video"


@pytest.fixture
def film(tmp_path: Path, registry: Models) -> Film:
    return Film(tmp_path / "objects", registry)


def test_vid_01_a_portrait_clip_is_worked_on_upright(film: Film, astronaut: Path) -> None:
    result, path = film.run(film.job(astronaut, CASES / "phone_portrait_coded_192x128.mp4"))
    seen = told(path)
    assert (result.width, result.height) == (128, 192)
    assert result.frames == len(pictures(path)) == 50
    assert result.frames_swapped == 50
    assert (seen["size"], abs(int(str(seen["rotation"]))) % 180) in (((192, 128), 90), ((128, 192), 0))


@pytest.mark.parametrize(("name", "audio"), [("no_audio", 0), ("two_audio_eng_deu", 2), ("audio_stream_first", 1)])
def test_vid_03_sound_comes_along(film: Film, astronaut: Path, name: str, audio: int) -> None:
    result, path = film.run(film.job(astronaut, CASES / f"{name}.mp4"))
    seen = told(path)
    assert seen["videos"] == 1
    assert len(list(seen["audio"])) == audio  # type: ignore[call-overload]
    assert result.frames == 50
    assert not set(result.warnings) & {"audio_reencoded", "audio_dropped"}


def test_vid_03_a_cover_picture_is_not_the_video(film: Film, astronaut: Path) -> None:
    assert film.run(film.job(astronaut, CASES / "cover_art.mp4"))[0].frames == 50


def clip(path: Path, frames: int, size: tuple[int, int], encoder: str) -> Path:
    """As the field's clips of 101 x 77 and of one frame, but with a face that is large enough to be measured."""
    import av

    with av.open(str(path), "w") as out:
        stream = out.add_stream(encoder, rate=25)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for picture in pictures(CASES / "no_audio.mp4")[:frames]:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24").reformat(*size, "yuv420p")))
        out.mux(stream.encode())
    return path


@pytest.mark.parametrize(("container", "size"), [("webm", (151, 155)), ("mp4", (152, 156))])
def test_vid_04_an_odd_size_is_kept_where_it_can_be_and_told(
    film: Film, astronaut: Path, tmp_path: Path, container: str, size: tuple[int, int]
) -> None:
    codec = "same" if container == "webm" else "h264"
    result, path = film.run(
        film.job(astronaut, clip(tmp_path / "odd.webm", 12, (151, 155), "libvpx-vp9"), format=container, codec=codec)
    )
    assert told(path)["size"] == (result.width, result.height) == size
    assert result.frames == len(pictures(path)) == 12


def test_vid_07_an_index_at_the_end_does_not_matter(film: Film, astronaut: Path) -> None:
    _, path = film.run(film.job(astronaut, CASES / "moov_at_end.mp4"))
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    assert len(pictures(path)) == 50


def test_vid_09_one_frame_is_a_video_of_one_frame(film: Film, astronaut: Path, tmp_path: Path) -> None:
    result, path = film.run(film.job(astronaut, clip(tmp_path / "one.mp4", 1, (192, 192), "libx264")))
    assert result.frames == len(pictures(path)) == 1


def test_vid_12_where_nobody_is_nothing_changes(film: Film, astronaut: Path) -> None:
    target = CASES / "face_gone_frames_10_to_19.mp4"
    result, path = film.run(film.job(astronaut, target))
    assert (result.frames, result.frames_swapped, result.frames_without_face) == (30, 20, 10)
    before, after = pictures(target), pictures(path)
    apart = [float(np.abs(a.astype(int) - b).mean()) for a, b in zip(before, after, strict=True)]
    assert max(apart[10:20]) <= 3
    assert min(apart[:10] + apart[20:]) > 0


def test_vid_12_scenes_with_one_no_and_two_faces(film: Film, astronaut: Path) -> None:
    result, path = film.run(film.job(astronaut, CASES / "scene_cuts_1_0_2_faces.mp4"))
    assert result.frames == len(pictures(path)) == 30
    assert result.frames_swapped == 10  # the first scene's face is squeezed by a third, and fits no mesh


def test_vid_12_the_person_of_the_reference_and_no_other(film: Film, astronaut: Path, tmp_path: Path) -> None:
    """Of two people who cross, one tinted green: a recogniser that tells them apart by their colour."""
    import cv2

    class Green:
        def warm(self) -> None: ...

        def embed(self, image: np.ndarray, points: list[np.ndarray]) -> np.ndarray:
            return np.stack([_vector(image, five) for five in points])

    target = CASES / "two_faces_cross.mp4"
    first = pictures(target)[0]
    cv2.imwrite(str(tmp_path / "green.png"), cv2.resize(first[100:220, 200:320], (480, 480)))
    parts = Parts(film.models, {"green": Green()}, {"embedder": "green"})
    chosen = Film(tmp_path / "chosen", parts)
    _, path = chosen.run(chosen.job(astronaut, target, tmp_path / "green.png", faces="reference", eyes="source"))
    for before, after in zip(pictures(target), pictures(path), strict=True):
        change = np.abs(before.astype(int) - after).max(2) > 24
        assert change[120:].sum() > 20  # the green one is below
        assert change[:100].sum() == 0


def _vector(image: np.ndarray, five: np.ndarray) -> np.ndarray:
    x, y = five.mean(0).astype(int)
    reach = max(2, int(np.ptp(five[:, 0]) / 2))
    _, green, red = image[max(0, y - reach) : y + reach, max(0, x - reach) : x + reach].reshape(-1, 3).mean(0)
    vector = np.zeros(512, np.float32)
    vector[0 if green > red else 1] = 20
    vector[2] = 1
    return vector


def test_a_video_in_which_nobody_is_is_refused(film: Film, astronaut: Path, tmp_path: Path) -> None:
    import av

    with av.open(str(tmp_path / "grey.mp4"), "w") as out:
        stream = out.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 192, 192, "yuv420p"
        for _ in range(12):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((192, 192, 3), 90, np.uint8), format="bgr24")))
        out.mux(stream.encode())
    with pytest.raises(NoFaceInTargetError):
        film.run(film.job(astronaut, tmp_path / "grey.mp4"))


def test_frames_are_moderated_as_they_are_decoded(film: Film, astronaut: Path) -> None:
    film.tenant = Tenant("demo", Policy(nsfw_threshold=0.0))
    with pytest.raises(ContentRefusedError) as refused:
        film.video(film.job(astronaut, CASES / "no_audio.mp4"))
    assert refused.value.context["picture"] == "target"


@pytest.mark.parametrize("damaged", ["refuse", "finish"])
def test_a_clip_that_breaks_off_is_refused_or_finished_and_said_so(
    film: Film, astronaut: Path, tmp_path: Path, damaged: str
) -> None:
    whole = (CASES / "faststart.mp4").read_bytes()
    target = tmp_path / "cut.mp4"
    target.write_bytes(whole[: len(whole) * 2 // 3])
    job = film.job(astronaut, target, damaged=damaged)
    if damaged == "refuse":
        with pytest.raises(MediaTruncatedError):
            film.run(job)
        return
    result, path = film.run(job)
    assert "truncated" in result.warnings
    assert 0 < len(pictures(path)) == result.frames < 50


@pytest.mark.parametrize("container", ["same", "gif"])
def test_a_clip_of_which_pictures_are_lost_is_finished_and_said_so(
    film: Film, astronaut: Path, tmp_path: Path, container: str
) -> None:
    """Only decoding shows that they are: the container counts them."""
    import av

    target, data = tmp_path / "holes.mp4", bytearray((CASES / "faststart.mp4").read_bytes())
    with av.open(str(CASES / "faststart.mp4")) as clip:
        for packet in [packet for packet in clip.demux(video=0) if packet.size][9::10]:
            assert packet.pos is not None
            data[packet.pos + 4 : packet.pos + packet.size] = bytes(packet.size - 4)
    target.write_bytes(data)
    result, path = film.run(film.job(astronaut, target, damaged="finish", format=container))
    assert "frames_damaged" in result.warnings
    assert 40 <= result.frames == len(pictures(path)) < 50
