"""One file from the first place that has it whole: the bucket, then the file's own sources, then its conversion.

Every place that fails is remembered, so that the error at the end says what each of them gave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from shared.errors import (
    CacheFullError,
    ConfigError,
    ModelAccessDeniedError,
    ModelError,
    ModelInvalidError,
    ModelNotFoundError,
)
from shared.models import content, sources
from shared.models.bucket import ModelBucket
from shared.models.manifest import Entry
from shared.models.progress import Progress, Step
from shared.models.receiving import Received, Report, measure
from shared.models.spec import FileSpec

log = logging.getLogger(__name__)

Give: TypeAlias = Callable[[Path, Report], Received]
"""Writes what a place has to a path."""
Partials: TypeAlias = Callable[[str], AbstractContextManager[Path]]
"""Where the file with a digest may lie unfinished, for the one who has it open."""


@dataclass(frozen=True)
class _Place:
    name: str
    give: Give
    finished: bool
    """Whether it gives the file itself, or what the file is made from."""


class Fetcher:
    """Works in the folder `work`, which its caller removes."""

    def __init__(
        self, bucket: ModelBucket | None, work: Path, progress: Progress, *, owner: str, partials: Partials
    ) -> None:
        self._bucket = bucket
        self._work = work
        self._owner = owner
        self._partials = partials
        self._progress = progress

    def fetch(self, model: str, file: FileSpec, target: Path) -> Entry:
        """Leave the verified `file` at `target`, or nothing. Raises the most telling error of all places."""
        failures: list[ModelError] = []
        for place in self._places(file):
            try:
                return self._take(model, file, place, target)
            except CacheFullError:
                raise
            except ModelError as error:
                log.warning("%s of %s: %s: %s", file.name, model, place.name, error.detail)
                target.unlink(missing_ok=True)
                failures.append(error)
        raise _summary(model, file, failures)

    def derive(self, model: str, file: FileSpec, origin: Path, target: Path) -> Entry:
        """Leave at `target` what the file's conversion makes of `origin`. Raises ModelError, its kin, ConfigError."""
        self._progress(Step(model, "convert", file.name))
        note = _convert(file.convert, origin, target)
        made = measure(target)
        content.verify(file.name, made, size=file.size, sha256=file.sha256)
        return Entry(made.size, made.sha256, note=note)

    def _places(self, file: FileSpec) -> Iterator[_Place]:
        digest = file.sha256 or file.source_sha256
        if self._bucket is not None and digest:
            give = self._from_bucket(self._bucket, (digest, file.size if file.sha256 else file.source_size))
            yield _Place("bucket", give, finished=bool(file.sha256))
        for text in file.sources:
            yield _Place(text, self._from_source(sources.parse(text)), finished=not file.convert)

    def _take(self, model: str, file: FileSpec, place: _Place, target: Path) -> Entry:
        def report(done: int, total: int) -> None:
            self._progress(Step(model, "fetch", file.name, done, total))

        if place.finished:
            got = place.give(target, report)
            content.verify(file.name, got, size=file.size, sha256=file.sha256)
            return Entry(got.size, got.sha256)
        raw = self._work / f"{file.name}.source"
        got = place.give(raw, report)
        content.verify(file.name, got, size=file.source_size, sha256=file.source_sha256)
        made = self.derive(model, file, raw, target)
        raw.unlink()
        return replace(made, source_sha256=got.sha256, source_size=got.size)

    def _from_source(self, source: sources.Source) -> Give:
        return lambda target, report: sources.fetch(source, target, self._work, report)

    def _from_bucket(self, bucket: ModelBucket, expected: tuple[str, int]) -> Give:
        def give(target: Path, report: Report) -> Received:
            report(0, expected[1])
            with self._partials(expected[0]) as partial:
                return bucket.fetch(self._owner, expected, target, partial=partial, report=report)

        return give


def _convert(entry_point: str, source: Path, target: Path) -> str:
    """What the conversion has to say; mostly nothing."""
    module, _, name = entry_point.partition(":")
    try:
        function: Callable[[Path, Path], str | None] = getattr(import_module(module), name)
    except ImportError as error:
        raise ModelError(f"The conversion needs a package that is not installed here: {error.name}.") from error
    except AttributeError as error:
        raise ConfigError(f"There is no conversion {entry_point}.") from error
    return function(source, target) or ""


def _summary(model: str, file: FileSpec, failures: list[ModelError]) -> ModelError:
    """One error for all places. What may pass by itself outranks the rest: then a later try can succeed."""
    said = " ".join(failure.detail for failure in failures) or "It has no source."
    ranked = (ModelError, ModelAccessDeniedError, ModelInvalidError, ModelNotFoundError)
    for kind in ranked:
        for failure in failures:
            if type(failure) is kind or (kind is ModelError and type(failure) not in ranked):
                return kind(f"{model}: {file.name} could not be fetched. {said}", context=failure.context)
    return ModelNotFoundError(f"{model}: {file.name} could not be fetched. {said}")
