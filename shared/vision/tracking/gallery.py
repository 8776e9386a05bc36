"""Who is meant in a video: written when the first faces were seen, read by all later parts.

A recogniser's vectors are biometric data: the record is an object of the job, deleted with it, and never leaves the
store. Knows numpy and the error tree.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.errors import InvalidCloudEventError
from shared.vision.protocols import Floats

_MOST = 64
"""As many people as a mapping may name."""


@dataclass(frozen=True)
class Gallery:
    vectors: Floats
    """[people, 512]"""
    sources: NDArray[np.int16]
    """[people]: which source each of them gets."""

    def __len__(self) -> int:
        return len(self.vectors)


def write(gallery: Gallery) -> bytes:
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, vectors=gallery.vectors, sources=gallery.sources)
    return data.getvalue()


def read(data: bytes) -> Gallery:
    """Raises InvalidCloudEventError for anything that `write` cannot have made."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            vectors, sources = file["vectors"], file["sources"]
    except (ValueError, KeyError, EOFError, OSError, MemoryError, zipfile.BadZipFile) as error:
        raise _unreadable() from error
    right = vectors.dtype == np.float32 and sources.dtype == np.int16 and np.isfinite(vectors).all()
    if not right or len(vectors) > _MOST or vectors.shape != (len(sources), 512):
        raise _unreadable()
    return Gallery(vectors, sources)


def _unreadable() -> InvalidCloudEventError:
    return InvalidCloudEventError("data: the gallery cannot be read.", context={"attribute": "data"})
