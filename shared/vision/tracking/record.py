"""The tracks of a clip as a file: a zipped `.npz` of plain numbers, versioned, read with limits.

Knows numpy, the tracks and the error tree.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared.errors import InvalidCloudEventError
from shared.vision.tracking.meshes import Meshes
from shared.vision.tracking.tracks import Tracks

Arrays: TypeAlias = dict[str, NDArray[Any]]

VERSION = 1
_MOST = 2**30
"""Bytes of all arrays of a file that is read."""
_FIELDS = {
    "version": ("<i4", ()),
    "pts": ("<i8", (-1,)),
    "cuts": ("<i4", (-1,)),
    "persons": ("<i2", (-1,)),
    "sources": ("<i2", (-1,)),
    "frame": ("<i4", (-1,)),
    "track": ("<i2", (-1,)),
    "middles": ("<f4", (-1, 3)),
    "steps": ("<f4", (-1,)),
    "meshes": ("<i2", (-1, 468, 3)),
    "points": ("<f4", (-1, 5, 2)),
    "boxes": ("<f4", (-1, 4)),
    "scores": ("<f4", (-1,)),
    "strengths": ("<f4", (-1,)),
}
"""Type and shape of every array of the file; -1 is any number."""


def write(tracks: Tracks, file: BinaryIO) -> None:
    """Into an open file; the same tracks give the same bytes."""
    meshes = tracks.meshes if isinstance(tracks.meshes, Meshes) else Meshes.of(tracks.meshes)
    kept = {name: getattr(tracks, name) for name in _FIELDS.keys() & Tracks.__dataclass_fields__.keys()}
    packed = {"middles": meshes.middles, "steps": meshes.steps, "meshes": meshes.packed}
    arrays = {**kept, "version": np.int32(VERSION), **packed}
    written: Arrays = {name: np.asarray(arrays[name], kind) for name, (kind, _) in _FIELDS.items()}
    np.savez_compressed(file, allow_pickle=False, **written)


def read(data: bytes) -> Tracks:
    """Raises InvalidCloudEventError for anything that `write` cannot have made, before it takes much memory."""
    try:
        return _tracks(_arrays(data))
    except (ValueError, KeyError, EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidCloudEventError("data: the tracks cannot be read.", context={"attribute": "data"}) from error


def _arrays(data: bytes) -> Arrays:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        if sum(member.file_size for member in file.infolist()) > _MOST:
            raise ValueError("size")
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in _FIELDS}
    for name, (kind, shape) in _FIELDS.items():
        found = arrays[name]
        if found.dtype != np.dtype(kind) or len(found.shape) != len(shape):
            raise ValueError(name)
        if any(want not in (-1, have) for want, have in zip(shape, found.shape, strict=True)):
            raise ValueError(name)
    return arrays


def _tracks(arrays: Arrays) -> Tracks:
    """Raises ValueError where one array points beside another."""
    steps, middles = arrays.pop("steps"), arrays.pop("middles")
    if int(arrays.pop("version")) != VERSION or not len(steps) == len(middles) == len(arrays["meshes"]):
        raise ValueError("version")
    tracks = Tracks(meshes=Meshes(arrays.pop("meshes"), middles, steps), **arrays)
    farthest = np.abs(middles).max(1, initial=0) + np.abs(steps) * np.float32(2**15)
    rows = {len(getattr(tracks, name)) for name in ("frame", "track", "points", "boxes", "scores", "strengths")}
    inside = (
        rows == {len(tracks.meshes)}
        and len(tracks.persons) == len(tracks.sources)
        and _within(tracks.frame, len(tracks.pts))
        and _within(tracks.track, len(tracks.persons))
        and _within(tracks.cuts, len(tracks.pts))
        and bool((np.diff(tracks.frame) >= 0).all() and (np.diff(tracks.pts) >= 0).all())
        and all(bool(np.isfinite(x).all()) for x in (farthest, tracks.boxes, tracks.scores, tracks.strengths))
    )
    if not inside:
        raise ValueError("indices")
    return tracks


def _within(indices: NDArray[np.int32] | NDArray[np.int16], count: int) -> bool:
    return bool(((indices >= 0) & (indices < count)).all())
