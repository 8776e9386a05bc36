"""One file from the first place that has it whole: the bucket, then the file's own sources, then its conversion.

Every place that fails is remembered, so that the error at the end says what each of them gave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from shared.errors import (
    CacheFullError,
    ConfigError,
    ModelAccessDeniedError,
    ModelError,
    ModelInvalidError,
    ModelNotFoundError,
    ObjectNotFoundError,
    StoreAccessDeniedError,
    StoreUnavailableError,
)
from shared.models import content, sources
from shared.models.progress import Action, Progress, Step
from shared.models.receiving import Received, Report, measure
from shared.models.spec import FileSpec
from shared.storage.protocol import ObjectStore

log = logging.getLogger(__name__)

BUCKET_PREFIX = "models/sha256/"
"""Objects of the model bucket are named by the digest of their content."""


class Fetcher:
    """Works in the folder `work`, which its caller removes."""

    def __init__(self, bucket: ObjectStore | None, work: Path, progress: Progress) -> None:
        self._bucket = bucket
        self._work = work
        self._progress = progress

    def fetch(self, model: str, file: FileSpec, target: Path) -> None:
        """Leave the verified `file` at `target`, or nothing. Raises the most telling error of all places."""
        failures: list[ModelError] = []
        for place, attempt in self._places(model, file, target):
            try:
                attempt()
            except CacheFullError:
                raise
            except ModelError as error:
                log.warning("%s of %s: %s: %s", file.name, model, place, error.detail)
                target.unlink(missing_ok=True)
                failures.append(error)
            else:
                return
        raise _summary(model, file, failures)

    def _places(self, model: str, file: FileSpec, target: Path) -> list[tuple[str, Callable[[], None]]]:
        def from_source(text: str) -> Callable[[], None]:
            return lambda: self._from_source(model, file, sources.parse(text), target)

        places = [(text, from_source(text)) for text in file.sources]
        if self._bucket is not None:
            bucket = self._bucket
            places.insert(0, ("bucket", lambda: self._from_bucket(model, file, bucket, target)))
        return places

    def _from_bucket(self, model: str, file: FileSpec, bucket: ObjectStore, target: Path) -> None:
        report = self._report(model, "fetch", file)
        report(0, file.size)
        try:
            bucket.download(BUCKET_PREFIX + file.sha256, target)
        except ObjectNotFoundError as error:
            raise ModelNotFoundError("The bucket does not have it.") from error
        except StoreAccessDeniedError as error:
            raise ModelAccessDeniedError(f"The bucket refuses access: {error.detail}") from error
        except StoreUnavailableError as error:
            raise ModelError(f"The bucket is not available: {error.detail}") from error
        received = measure(target)
        content.verify(file.name, received, size=file.size, sha256=file.sha256)
        report(received.size, file.size)

    def _from_source(self, model: str, file: FileSpec, source: sources.Source, target: Path) -> None:
        report = self._report(model, "fetch", file)
        if not file.convert:
            received = sources.fetch(source, target, self._work, report)
            content.verify(file.name, received, size=file.size, sha256=file.sha256)
            return
        raw = self._work / f"{file.name}.source"
        received = sources.fetch(source, raw, self._work, report)
        content.verify(file.name, received, size=0, sha256=file.source_sha256)
        self._progress(Step(model, "convert", file.name))
        converted = _convert(file.convert, raw, target)
        raw.unlink()
        content.verify(file.name, converted, size=file.size, sha256=file.sha256)

    def _report(self, model: str, action: Action, file: FileSpec) -> Report:
        return lambda done, total: self._progress(Step(model, action, file.name, done, total))


def _convert(entry_point: str, source: Path, target: Path) -> Received:
    module, _, name = entry_point.partition(":")
    try:
        function: Callable[[Path, Path], None] = getattr(import_module(module), name)
    except ImportError as error:
        raise ModelError(f"The conversion needs a package that is not installed here: {error.name}.") from error
    except AttributeError as error:
        raise ConfigError(f"There is no conversion {entry_point}.") from error
    function(source, target)
    return measure(target)


def _summary(model: str, file: FileSpec, failures: list[ModelError]) -> ModelError:
    """One error for all places. What may pass by itself outranks the rest: then a later try can succeed."""
    said = " ".join(failure.detail for failure in failures) or "It has no source."
    ranked = (ModelError, ModelAccessDeniedError, ModelInvalidError, ModelNotFoundError)
    for kind in ranked:
        for failure in failures:
            if type(failure) is kind or (kind is ModelError and type(failure) not in ranked):
                return kind(f"{model}: {file.name} could not be fetched. {said}", context=failure.context)
    return ModelNotFoundError(f"{model}: {file.name} could not be fetched. {said}")
