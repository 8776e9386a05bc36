"""Swappers as heavy as the real inswapper, kept outside of git between runs, in a catalogue of their own.

    python -m tests.standins.full_size <folder>

528 MiB each in float32: 14 convolutions of 1024 x 1024 channels at 32 x 32.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from shared.models.catalog import Catalog
from shared.models.spec import FileSpec, ModelSpec
from shared.vision.protocols import Parameter
from tests.standins import embedders, swappers
from tests.standins.swappers import FAMILIES, Build

FULL = Build(width=1024, blocks=14)
FIRST, SECOND = "full", "second"
"""Of the same size, with other weights."""
_EMBEDDER = "arcface"


def catalogue(folder: Path, how: Build = FULL) -> Catalog:
    """FIRST and SECOND with a small embedder; their files are made in `folder` if they are not there."""
    models = {_EMBEDDER: _spec(_EMBEDDER, "embedder", embedders.build(folder / _EMBEDDER))}
    for seed, name in enumerate((FIRST, SECOND)):
        models[name] = _spec(name, "swapper", _made(folder / f"{name}-{how.width}x{how.blocks}", how, seed))
    return Catalog(models, {}, {}, {})


def _made(folder: Path, how: Build, seed: int) -> dict[str, Path]:
    done = folder / "done"
    files = {"model": folder / "inswapper.onnx", "emap": folder / "inswapper_emap.npy"}
    if not done.exists():
        files = swappers.build("inswapper", folder, Build(how.width, how.blocks, how.batch, seed))
        done.touch()
    return files


def _spec(name: str, role: str, files: dict[str, Path]) -> ModelSpec:
    swapper = role == "swapper"
    parameters = FAMILIES["inswapper"].parameters if swapper else cast("Mapping[str, Parameter]", embedders.PARAMETERS)
    return ModelSpec(
        name=name,
        licence="none",
        files=tuple(_file(part, path) for part, path in files.items()),
        role=role,
        adapter=FAMILIES["inswapper"].adapter if swapper else "shared.vision.embedder.arcface:ArcFace",
        vendor="",
        commercial="yes",
        parameters=parameters,
        uses={"embedder": _EMBEDDER} if swapper else {},
    )


def _file(part: str, path: Path) -> FileSpec:
    note = path.with_name(f"{path.name}.sha256")
    if not note.exists():
        with path.open("rb") as file:
            note.write_text(hashlib.file_digest(file, "sha256").hexdigest(), encoding="ascii")
    return FileSpec(part, path.name, path.stat().st_size, note.read_text(encoding="ascii"), (f"file:{path}",))


if __name__ == "__main__":
    catalogue(Path(sys.argv[1]))
