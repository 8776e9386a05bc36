"""The node's model cache: a folder of verified file sets, filled once, read by every process of the node.

    <root>/<name>-<digest>/...       a complete set with its manifest, renamed into place as a whole
    <root>/.locks/<set>              held by the one process that fetches the set
    <root>/.tmp/<set>/<unique>/      where it works; belongs to the lock's holder, so what a killed process left is
                                     recognised by its free lock and removed by the next fetch

Order of places: this folder, the bucket, the model's own sources. Never loads a model. A folder that is mounted
read-only works for every set that is complete.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from shared.errors import ModelError, ModelNotFoundError
from shared.models import manifest, onnx_file
from shared.models.fetching import Fetcher
from shared.models.lock import NAME, LockFile
from shared.models.locks import locked, locked_if_free
from shared.models.manifest import Entry
from shared.models.progress import Progress, Step, silent
from shared.models.receiving import disk_errors, require_space, sync_folder
from shared.models.spec import FileSet
from shared.storage.protocol import ObjectStore

LOCKS, STAGING = ".locks", ".tmp"

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class ModelCache:
    """Safe to share between threads; any number of processes may use one `root`."""

    def __init__(self, root: Path, bucket: ObjectStore | None = None, lock: Path | None = None) -> None:
        """`lock`: where digests that the catalogue lacks are pinned; by default beside `root`."""
        self.root = root
        self.lock = LockFile(lock or root.with_name(NAME))
        self._bucket = bucket

    def find(self, files: FileSet) -> Mapping[str, Path] | None:
        """Paths by part when the set is complete; costs a small read and a stat a file."""
        return manifest.lookup(self.root / files.folder, files) if files.files else {}

    def ensure(self, files: FileSet, progress: Progress = silent) -> Mapping[str, Path]:
        """Paths by part, fetched first if need be.

        Raises ModelError and its kin (what every place said), CacheFullError, ModelInvalidError,
        ModelIncompatibleError, ModelIncompleteError. After any of them the set is not in the cache.
        """
        if not files.files:
            return {}
        found = self.find(files)
        if found is None:
            with self._alone(files, lambda: progress(Step(files.name, "wait"))):
                found = self.find(files) or self._fill(files, progress)
        size = sum(path.stat().st_size for path in found.values())
        progress(Step(files.name, "ready", "", size, size))
        return found

    def _fill(self, files: FileSet, progress: Progress) -> Mapping[str, Path]:
        self._sweep()
        with self._workplace(files) as work, disk_errors():
            folder = work / "files"
            folder.mkdir()
            require_space(folder, files.size)
            entries = self._fetched(files, folder, Fetcher(self._bucket, work, progress))
            self._pin(files, entries)
            _write(folder / manifest.NAME, manifest.document(files.name, entries))
            sync_folder(folder)
            self._publish(folder, self.root / files.folder, work)
        return manifest.paths(self.root / files.folder, files)

    def _fetched(self, files: FileSet, folder: Path, fetcher: Fetcher) -> dict[str, Entry]:
        """Every file of the set in `folder`, checked; what is known of them by file name."""
        parts = manifest.paths(folder, files)
        downloads = [self.lock.pinned(files.name, file) for file in files.files if not file.origin]
        entries = {file.name: fetcher.fetch(files.name, file, parts[file.part]) for file in downloads}
        for file in downloads:
            if file.name.endswith(".onnx"):
                onnx_file.check(parts[file.part])
        for file in files.files:
            if file.origin:
                entries[file.name] = fetcher.derive(files.name, file, parts[file.origin], parts[file.part])
        return entries

    def _pin(self, files: FileSet, entries: Mapping[str, Entry]) -> None:
        for file in files.files:
            if not file.origin and not file.download_sha256:
                entry = entries[file.name]
                known = (entry.source_sha256, entry.source_size) if file.convert else (entry.sha256, entry.size)
                self.lock.pin(files.name, file.part, *known)

    def _publish(self, folder: Path, final: Path, work: Path) -> None:
        if final.exists():  # damaged since: a complete one would have been found
            final.rename(work / "damaged")
        folder.rename(final)
        sync_folder(self.root)

    @contextmanager
    def _alone(self, files: FileSet, waiting: Callable[[], None]) -> Iterator[None]:
        try:
            with disk_errors(), locked(self.root / LOCKS / files.folder, waiting):
                yield
        except OSError as error:
            if error.errno in _READ_ONLY:
                raise ModelNotFoundError(f"{files.name} is not in the model cache, which is read-only here.") from error
            raise ModelError(f"The model cache cannot be used: {error.strerror}.") from error

    @contextmanager
    def _workplace(self, files: FileSet) -> Iterator[Path]:
        own = self.root / STAGING / files.folder
        work = own / uuid.uuid4().hex
        shutil.rmtree(own, ignore_errors=True)
        with disk_errors():
            work.mkdir(parents=True)
        try:
            yield work
        finally:
            shutil.rmtree(own, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what killed processes left of other sets: working folders whose lock nobody holds."""
        for leftover in (self.root / STAGING).glob("*"):
            with locked_if_free(self.root / LOCKS / leftover.name) as free:
                if free:
                    shutil.rmtree(leftover, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
