"""The node's model cache: a folder of verified file sets, filled once, read by every process of the node.

    <root>/<name>-<digest>/...       a complete set with its manifest, renamed into place as a whole
    <root>/.locks/<set>              held by the one process that fetches the set
    <root>/.tmp/<set>/<unique>/      where it works; belongs to the lock's holder, so what a killed process left is
                                     recognised by its free lock and removed by the next fetch
    <root>/.part/<digest>            a file of the bucket on its way, taken up again after a crash
    <root>/.tags/                    the versions that were chosen

Order of places: this folder, the bucket, the model's own sources. Never loads a model. A folder that is mounted
read-only works for every set that is complete.
"""

from __future__ import annotations

import errno
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from shared.errors import CacheFullError, ModelError, ModelNotFoundError
from shared.models import manifest, onnx_file
from shared.models.bucket import ModelBucket
from shared.models.eviction import Evictor
from shared.models.fetching import Fetcher
from shared.models.lock import NAME, LockFile
from shared.models.locks import locked, locked_if_free
from shared.models.manifest import Entry
from shared.models.partial import room
from shared.models.progress import Progress, Step, silent
from shared.models.receiving import LIMIT, disk_errors, measure, sync_folder
from shared.models.spec import FileSet
from shared.models.tags import S, Tags
from shared.models.uses import Uses
from shared.storage.protocol import ObjectStore

LOCKS, STAGING, PARTIAL, TAGS = ".locks", ".tmp", ".part", ".tags"
TRASH = "removed"

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class ModelCache:
    """Safe to share between threads; any number of processes may use one `root`."""

    def __init__(
        self,
        root: Path,
        bucket: ObjectStore | None = None,
        lock: Path | None = None,
        *,
        tag: str = "",
        otherwise: str = "",
        tenant: str = "",
        refresh: bool = False,
    ) -> None:
        """`lock`: where digests that the catalogue lacks are pinned; by default beside `root`.

        `tag`: channel or version of the bucket's models, asked for anew with `refresh`; `otherwise`: another one, for
        models that do not have it; `tenant`: whose own models come before the common ones.
        """
        self.root = root
        self.lock = LockFile(lock or root.with_name(NAME))
        self._bucket = ModelBucket(bucket, tenant) if bucket else None
        other = (
            Tags(root / TAGS, self._bucket, otherwise, tenant, refresh=refresh) if otherwise not in ("", tag) else None
        )
        self._tags = Tags(root / TAGS, self._bucket, tag, tenant, refresh=refresh, otherwise=other)
        self._uses = Uses(root / LOCKS)
        self._evictor = Evictor(root, root / PARTIAL, root / LOCKS, root / STAGING / TRASH, self._uses)

    def chosen(self, files: S) -> S:
        """The set in the version that this cache uses; the bucket is asked for it once, where the node has no note.

        Raises ModelInvalidError, ModelAccessDeniedError, ModelError.
        """
        return self._tags.chosen(files, ask=True)

    def find(self, files: FileSet) -> Mapping[str, Path] | None:
        """Paths by part when the set is complete; costs a small read and a stat a file, and asks nobody."""
        return self._find(self._tags.chosen(files, ask=False))

    def ensure(self, files: FileSet, progress: Progress = silent) -> Mapping[str, Path]:
        """Paths by part, fetched first if need be; no longer removed to make room while this process lives.

        Raises ModelError and its kin (what every place said), CacheFullError, ModelInvalidError,
        ModelIncompatibleError, ModelIncompleteError. After any of them the set is not in the cache.
        """
        if not files.files:
            return {}
        files = self._tags.chosen(files, ask=True)
        self._uses.hold(files.folder)
        try:
            found = self._find(files) or self._proven(files)
            if found is None:
                with self._alone(files, lambda: progress(Step(files.name, "wait"))):
                    found = self._find(files) or self._filled(files, progress)
            size = _size(files, found)
        except ModelError:
            self._uses.release(files.folder)
            raise
        progress(Step(files.name, "ready", "", size, size))
        return found

    def release(self, files: FileSet) -> None:
        """The set may be removed to make room: this process has let go of its files."""
        self._uses.release(self._tags.chosen(files, ask=False).folder)

    def folder(self, files: FileSet) -> str:
        """The name of the set's folder in the version that this node uses."""
        return self._tags.chosen(files, ask=False).folder

    def digest(self, files: FileSet) -> str:
        """The set's digest over the digests of its files here, also where the catalogue does not know them before."""
        files = self._tags.chosen(files, ask=False)
        entries = manifest.read(self.root / files.folder) or {}
        known = (replace(file, sha256=entries[file.name].sha256) for file in files.files if file.name in entries)
        return replace(files, files=tuple(known) or files.files).digest

    def discard(self, folder: str) -> None:
        """Take a set that was found bad away from everybody; who has its files open keeps them."""
        with disk_errors(), locked(self.root / LOCKS / folder, lambda: None):
            self._evictor.drop(folder)

    def _find(self, files: FileSet) -> Mapping[str, Path] | None:
        return manifest.lookup(self.root / files.folder, files) if files.files else {}

    def _proven(self, files: FileSet) -> Mapping[str, Path] | None:
        """The paths of a set whose files were touched since, when all of them still have their digests."""
        folder = self.root / files.folder
        names, entries = manifest.suspects(folder, files), manifest.read(folder)
        if not names or entries is None:
            return None
        try:
            if any(measure(folder / name).sha256 != entries[name].sha256 for name in names):
                return None
        except OSError:
            return None
        with suppress(OSError):  # a read-only folder is hashed each time
            manifest.write(folder, files.name, {name: entry.stamped(folder / name) for name, entry in entries.items()})
        return manifest.paths(folder, files)

    def _filled(self, files: FileSet, progress: Progress) -> Mapping[str, Path]:
        shutil.rmtree(self.root / STAGING / files.folder, ignore_errors=True)  # a killed holder of this lock
        self._sweep()
        unfinished = sum(room(self.root / PARTIAL / file.sha256) for file in files.files if file.sha256)
        with disk_errors():
            self.root.mkdir(parents=True, exist_ok=True)
            self._evictor.make_room(max(0, files.size - unfinished))
        while True:
            try:
                return self._fill(files, progress)
            except CacheFullError as error:
                # another writer took the room meanwhile, or the size was not known
                if error.context.get("reason") == LIMIT or not self._evictor.one():
                    raise

    def _fill(self, files: FileSet, progress: Progress) -> Mapping[str, Path]:
        with self._workplace(files) as work, disk_errors():
            folder = work / "files"
            folder.mkdir()
            fetcher = Fetcher(self._bucket, work, progress, owner=files.owner, partials=self._partial)
            entries = self._fetched(files, folder, fetcher)
            self._pin(files, entries)
            stamped = {name: entry.stamped(folder / name) for name, entry in entries.items()}
            manifest.write(folder, files.name, stamped)
            sync_folder(folder)
            self._publish(folder, self.root / files.folder, work)
        return manifest.paths(self.root / files.folder, files)

    @contextmanager
    def _partial(self, digest: str) -> Iterator[Path]:
        with locked(self.root / LOCKS / digest, lambda: None):
            yield self.root / PARTIAL / digest

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


def _size(files: FileSet, found: Mapping[str, Path]) -> int:
    try:
        return sum(path.stat().st_size for path in found.values())
    except FileNotFoundError as error:  # removed since it was found
        raise ModelNotFoundError(f"{files.name} was removed from the model cache just now.") from error
