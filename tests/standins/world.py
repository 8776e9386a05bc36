"""Stand-ins loaded as the registry would load them: `StandIns(folder).swapper("ghost", runtime)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.vision.batches import Batches
from shared.vision.embedder.arcface import ArcFace
from shared.vision.learned import LearnedSwapper
from shared.vision.protocols import Adapter, Floats, ModelAssets, Parameter
from shared.vision.runtime import Runtime
from shared.vision.session import Session
from tests.standins import embedders, swappers
from tests.standins.swappers import FAMILIES, Build

Array = NDArray[Any]
Answer = Callable[[Mapping[str, Array]], list[Floats]]


class StandIns:
    """Files are built once per folder and way of building."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[tuple[str, Build], dict[str, Path]] = {}

    def files(self, name: str, how: Build | None = None) -> dict[str, Path]:
        how = how or Build()
        if (name, how) not in self._known:
            kind = f"{how.width}x{how.blocks}-{how.batch}-{how.seed}"
            self._known[name, how] = swappers.build(name, self.folder / kind, how)
        return self._known[name, how]

    def swapper(
        self,
        name: str,
        runtime: Runtime,
        how: Build | None = None,
        embedder: Adapter | None = None,
        **changed: Parameter,
    ) -> LearnedSwapper:
        """`changed`: parameters other than the family's own; `embedder`: another than the stand-in for ArcFace."""
        family = FAMILIES[name]
        module, _, cls = family.adapter.partition(":")
        uses = {"embedder": embedder or self.embedder(runtime)} if len(family.source) == 1 else {}
        assets = ModelAssets(name, self.files(name, how), {**family.parameters, **changed}, uses)
        made: LearnedSwapper = getattr(import_module(module), cls)(assets, runtime)
        return made

    def embedder(self, runtime: Runtime) -> ArcFace:
        files = embedders.build(self.folder / "embedder")
        return ArcFace(ModelAssets("arcface", files, embedders.PARAMETERS), runtime)


class RecordingSession:
    """A session that keeps what it is fed, and gives what `answer` says, if there is one, in place of the network."""

    def __init__(self, session: Session, answer: Answer | None) -> None:
        self.inputs, self.outputs, self.provider, self.batch = (
            session.inputs,
            session.outputs,
            session.provider,
            session.batch,
        )
        self.fed: list[dict[str, Array]] = []
        self._session = session
        self._answer = answer

    def run(self, feeds: Mapping[str, Array], outputs: Sequence[str] | None = None) -> list[NDArray[np.float32]]:
        self.fed.append(dict(feeds))
        return self._answer(feeds) if self._answer else self._session.run(feeds, outputs)


class RecordingRuntime(Runtime):
    """Sessions by the name of their file: `runtime.sessions["ghost"].fed[-1]["target"]`."""

    def __init__(self, **answers: Answer) -> None:
        super().__init__(threads=1)
        self.sessions: dict[str, RecordingSession] = {}
        self._answers = answers

    def session(self, path: Path, *, threads: int | None = None) -> RecordingSession:  # type: ignore[override]
        recording = RecordingSession(super().session(path, threads=threads), self._answers.get(path.stem))
        self.sessions[path.stem] = recording
        return recording

    def batches(self, session: RecordingSession) -> Batches:  # type: ignore[override]
        return Batches(session, self._batch_elements or 1 << 22)


class FixedEmbedder:
    """An embedder that knows pictures by the level of their first pixel."""

    def __init__(self, rows: Mapping[int, Sequence[float]]) -> None:
        self._rows = rows
        self.calls = 0

    def warm(self) -> None: ...

    def embed(self, image: Array, points: Sequence[Floats]) -> Floats:
        self.calls += 1
        row = np.zeros(512, np.float32)
        known = self._rows[int(image[0, 0, 0])]
        row[: len(known)] = known
        return np.stack([row] * len(points))
