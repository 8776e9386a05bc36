"""The tracks' file: exact enough, small, and nothing else is read."""

from __future__ import annotations

import io
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from shared.errors import InvalidCloudEventError
from shared.vision.tracking import gallery, record
from shared.vision.tracking.gallery import Gallery
from shared.vision.tracking.tracks import NOBODY, Tracks

from .world import mesh_at


def made(frames: int = 20) -> Tracks:
    """Two people; the second comes later and is nobody's."""
    rows = [(f, t) for f in range(frames) for t in range(2) if t == 0 or f >= frames // 2]
    meshes = np.stack([mesh_at(300 + 7.3 * f + 900 * t, 400 - f, 380) for f, t in rows])
    points = np.full((len(rows), 5, 2), np.nan, np.float32)
    points[0] = 5
    return Tracks(
        pts=np.arange(frames, dtype=np.int64) * 512 - 1024,
        cuts=np.array([frames // 2], np.int32),
        persons=np.array([0, 1], np.int16),
        sources=np.array([0, NOBODY], np.int16),
        frame=np.array([f for f, _ in rows], np.int32),
        track=np.array([t for _, t in rows], np.int16),
        meshes=meshes,
        points=points,
        boxes=np.zeros((len(rows), 4), np.float32),
        scores=np.full(len(rows), 0.9, np.float32),
        strengths=np.ones(len(rows), np.float32),
    )


def written(tracks: Tracks) -> bytes:
    record.write(tracks, data := io.BytesIO())
    return data.getvalue()


def test_what_was_written_is_read() -> None:
    tracks = made()
    again = record.read(written(tracks))
    assert np.abs(again.meshes - tracks.meshes).max() < 0.01
    for name in ("pts", "cuts", "persons", "sources", "frame", "track", "boxes", "scores", "strengths"):
        assert np.array_equal(getattr(again, name), getattr(tracks, name))
    assert np.array_equal(again.points, tracks.points, equal_nan=True)


def test_the_file_is_half_of_the_numbers_at_most_and_always_the_same() -> None:
    tracks = made()
    data = written(tracks)
    assert len(data) < 0.55 * tracks.meshes.nbytes
    assert data == written(made())


def test_a_frame_is_found_by_its_time() -> None:
    tracks = made()
    first, last = tracks.at(-1024), tracks.at(19 * 512 - 1024)
    assert [place.track for place in first] == [0]
    assert first[0].points is not None
    assert [place.source for place in last] == [0, NOBODY]
    assert last[0].points is None
    assert [place.track for place in tracks.to_swap(19 * 512 - 1024)] == [0]
    assert tracks.at(7) == tracks.at(10**9) == tracks.at(-(10**9)) == []


def test_a_track_in_every_frame() -> None:
    dense = made().dense(1)
    assert np.isnan(dense[:10]).all()
    assert np.isfinite(dense[10:]).all()


def test_a_clip_without_faces() -> None:
    tracks = made()
    none = {name: getattr(tracks, name)[:0] for name in ("persons", "sources", "frame", "track", "meshes", "points")}
    none |= {name: getattr(tracks, name)[:0] for name in ("boxes", "scores", "strengths")}
    again = record.read(written(replace(tracks, **none)))
    assert len(again.pts) == 20
    assert again.at(-1024) == []


def with_array(name: str, value: object) -> bytes:
    with np.load(io.BytesIO(written(made()))) as file:
        arrays = dict(file)
    out = io.BytesIO()
    np.savez(out, **(arrays | {name: np.asarray(value)}))
    return out.getvalue()


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("unpickled",))


BAD = {
    "nothing": lambda: b"",
    "text": lambda: b"PK is no zip",
    "cut short": lambda: written(made())[:-900],
    "a pickle": lambda: pickle.dumps(made()),
    "an object": lambda: with_array("boxes", np.array([Trap()], object)),
    "another version": lambda: with_array("version", np.int32(2)),
    "another type": lambda: with_array("track", np.zeros(30, np.float64)),
    "another shape": lambda: with_array("meshes", np.zeros((30, 467, 3), np.int16)),
    "a track beside": lambda: with_array("track", np.full(30, 2, np.int16)),
    "a frame beside": lambda: with_array("frame", np.full(30, 20, np.int32)),
    "frames out of order": lambda: with_array("frame", np.arange(30, dtype=np.int32)[::-1] % 20),
    "too few": lambda: with_array("scores", np.zeros(29, np.float32)),
    "no numbers": lambda: with_array("middles", np.full((30, 3), np.nan, np.float32)),
    "a cut beside": lambda: with_array("cuts", np.array([20], np.int32)),
}


@pytest.mark.parametrize("name", BAD)
def test_nothing_else_is_read(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidCloudEventError):
        record.read(BAD[name]())
    assert "unpickled" not in capfd.readouterr().out


def test_a_bomb_is_not_unpacked() -> None:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("meshes.npy", "w", force_zip64=True) as member,
    ):
        block = bytes(2**20)
        for _ in range(1025):
            member.write(block)
    with pytest.raises(InvalidCloudEventError):
        record.read(out.getvalue())


def test_a_gallery() -> None:
    people = Gallery(np.random.default_rng(0).normal(size=(3, 512)).astype(np.float32), np.array([1, 0, 1], np.int16))
    again = gallery.read(gallery.write(people))
    assert np.array_equal(again.vectors, people.vectors)
    assert np.array_equal(again.sources, people.sources)
    for data in (b"", gallery.write(people)[:-50], with_array("x", 1), pickle.dumps(people)):
        with pytest.raises(InvalidCloudEventError):
            gallery.read(data)
