"""The object store as a folder: plain files under one root, so that people can drop and open them by hand.

A key is a path below the root. The ETag comes from the file's identity (inode, mtime, size), so a file put there
by another program has one too. Content type and metadata lie in a side file named after that identity and written
before the object becomes visible: an object and its metadata appear together or not at all. Writers take a lock
per key (flock, gone when the process dies); readers take none. Everything unfinished lives under `.store/`.
Knows the file system and nothing else.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from shared.errors import ObjectNotFoundError, PayloadTooLargeError, PreconditionFailedError, StoreUnavailableError
from shared.rejections import InvalidKeyError
from shared.storage import keys
from shared.storage.listing import fill_page, walk
from shared.storage.protocol import ObjectInfo, Page, Write

BINARY = "application/octet-stream"
NO_METADATA: Mapping[str, str] = MappingProxyType({})
OWN = ".store"
_STRIPES = 256
"""Lock files; two keys that share one only wait for each other."""
_MAX_SEGMENT = 255
"""Bytes in a file name on every common file system."""
_PIECE = 1 << 20


class LocalStore:
    """ObjectStore on a folder of one machine, or of a shared disk with working flock, link and rename."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._own = self.root / OWN
        for name in ("tmp", "meta", "locks"):
            (self._own / name).mkdir(parents=True, exist_ok=True)
        self._real_root = os.path.realpath(self.root)
        self._sweep_staged()

    def get(self, key: str, *, limit: int | None = None) -> tuple[bytes, ObjectInfo]:
        with self._open(key) as fd:
            info = self._info(key, os.fstat(fd))
            if limit is not None and info.size > limit:
                raise PayloadTooLargeError(f"The object is over {limit} bytes.")
            with _translated(), os.fdopen(os.dup(fd), "rb") as file:
                return file.read(), info

    def head(self, key: str) -> ObjectInfo:
        with self._open(key) as fd:
            return self._info(key, os.fstat(fd))

    def put(
        self, key: str, data: bytes, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        with self._staged(key, data, content_type, metadata) as new, self._lock(key):
            return self._place(key, new, os.replace)

    def create(
        self, key: str, data: bytes, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        with self._staged(key, data, content_type, metadata) as new, self._lock(key):
            return self._place(key, new, os.link)

    def replace(
        self, key: str, data: bytes, etag: str, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        with self._staged(key, data, content_type, metadata) as new, self._lock(key):
            try:
                current = self.head(key).etag
            except ObjectNotFoundError:
                current = ""
            if current != etag:
                raise PreconditionFailedError(f"{key} has another ETag.")
            return self._place(key, new, os.replace)

    def delete(self, key: str) -> None:
        path = self._path(key)
        with self._lock(key), _translated():
            with suppress(FileNotFoundError, NotADirectoryError):
                path.unlink()
            self._sweep_metadata(key, keep="")
        with suppress(OSError):  # a folder that is not empty, or that a writer just filled
            for parent in path.parents:
                if parent == self.root:
                    break
                parent.rmdir()

    def list(self, prefix: str, *, cursor: str = "", limit: int = 1000, delimiter: str = "") -> Page:
        with _translated():
            found = walk(self.root, prefix, cursor, skip=OWN)
            return fill_page(found, self._listed, prefix, limit, delimiter)

    def upload(
        self, path: Path, key: str, *, content_type: str = BINARY, metadata: Mapping[str, str] = NO_METADATA
    ) -> ObjectInfo:
        with self._staged(key, path, content_type, metadata) as new, self._lock(key):
            return self._place(key, new, os.replace)

    def download(self, key: str, path: Path) -> ObjectInfo:
        with self._open(key) as fd, _translated():
            info = self._info(key, os.fstat(fd))
            handle, name = tempfile.mkstemp(dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as out, os.fdopen(os.dup(fd), "rb") as source:
                    shutil.copyfileobj(source, out)
                os.replace(name, path)
            finally:
                Path(name).unlink(missing_ok=True)
        return info

    def read_range(self, key: str, start: int, size: int, write: Write, *, etag: str = "") -> ObjectInfo:
        with self._open(key) as fd:
            info = self._info(key, os.fstat(fd))
            if etag not in ("", info.etag):
                raise PreconditionFailedError(f"{key} has another ETag.")
            position, end = start, min(start + size, info.size)
            while position < end:
                with _translated():
                    data = os.pread(fd, min(_PIECE, end - position), position)
                if not data:
                    raise StoreUnavailableError("The object was cut off while it was read.")
                write(position, data)
                position += len(data)
        return info

    def link(self, key: str, seconds: int, *, filename: str = "") -> str:  # noqa: ARG002 - a folder knows no expiry
        self.head(key)
        return self._path(key).as_uri()

    def _path(self, key: str) -> Path:
        parts = keys.check(key).split("/")
        if parts[0] == OWN or any(len(part.encode()) > _MAX_SEGMENT for part in parts):
            raise InvalidKeyError("A folder store holds no segment over 255 bytes and nothing under .store/.")
        # a link could lead out of the store, or from one tenant's folder into another's
        if os.path.realpath(self.root.joinpath(*parts[:-1])) != os.path.join(self._real_root, *parts[:-1]):
            raise InvalidKeyError("The key goes through a link.")
        return self.root.joinpath(*parts)

    @contextmanager
    def _open(self, key: str) -> Iterator[int]:
        try:  # O_NONBLOCK: a named pipe in the folder must not hang the reader
            fd = os.open(self._path(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectNotFoundError(f"No object {key}.") from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise InvalidKeyError("The key is a link.") from None
            raise StoreUnavailableError(f"Not readable: {error.strerror}.") from error
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ObjectNotFoundError(f"No object {key}.")
            yield fd
        finally:
            os.close(fd)

    def _info(self, key: str, found: os.stat_result) -> ObjectInfo:
        content_type, metadata = BINARY, dict(NO_METADATA)
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):  # damaged: as if there were none
            side = json.loads(self._side(key, _identity(found)).read_bytes())
            content_type, metadata = side["content_type"], side["metadata"]
        identity = _identity(found)
        return ObjectInfo(key, found.st_size, identity, found.st_mtime, content_type, MappingProxyType(metadata))

    def _listed(self, key: str, path: Path) -> ObjectInfo:
        found = path.lstat()
        return ObjectInfo(key, found.st_size, _identity(found), found.st_mtime)

    @contextmanager
    def _staged(self, key: str, data: bytes | Path, content_type: str, metadata: Mapping[str, str]) -> Iterator[Path]:
        """The new object and its side file on disk, not yet visible; gone again unless it was placed."""
        self._path(key)
        with _translated():
            handle, new = self._claim()
            try:
                _fill(handle, data)
                side = self._side(key, _identity(new.stat()))
                side.parent.mkdir(parents=True, exist_ok=True)
                side.write_text(json.dumps({"content_type": content_type, "metadata": dict(metadata)}))
                yield new
            finally:
                new.unlink(missing_ok=True)
                os.close(handle)

    def _claim(self) -> tuple[int, Path]:
        """A new file, locked for as long as it is open, so that nobody takes it for what a dead writer left."""
        while True:
            handle, name = tempfile.mkstemp(dir=self._own / "tmp")
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink:
                return handle, Path(name)
            os.close(handle)  # it was swept in the instant before it was locked

    def _sweep_staged(self) -> None:
        """Delete what writers left that were killed: whole pictures, which nothing else would ever delete."""
        for entry in os.scandir(self._own / "tmp"):
            with suppress(OSError), open(entry.path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)

    def _place(self, key: str, new: Path, move: Callable[[Path, Path], None]) -> ObjectInfo:
        path, found = self._path(key), new.stat()
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                move(new, path)
                break
            except FileNotFoundError:
                continue  # delete() removed the empty folder between the two calls
            except FileExistsError:
                if path.is_file():
                    raise PreconditionFailedError(f"{key} exists.") from None
                raise InvalidKeyError("The key is already the prefix of another, or goes through one.") from None
            except (IsADirectoryError, NotADirectoryError):
                raise InvalidKeyError("The key is already the prefix of another, or goes through one.") from None
        _sync_folder(path.parent)
        self._sweep_metadata(key, keep=_identity(found))
        return self._info(key, found)

    def _side(self, key: str, identity: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._own / "meta" / digest[:2] / digest[2:] / identity

    def _sweep_metadata(self, key: str, keep: str) -> None:
        folder = self._side(key, "x").parent
        with suppress(OSError):
            for name in os.listdir(folder):
                if name != keep:
                    (folder / name).unlink(missing_ok=True)
            if not keep:
                folder.rmdir()

    @contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        stripe = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) % _STRIPES
        with (self._own / "locks" / f"{stripe:02x}").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@contextmanager
def _translated() -> Iterator[None]:
    """Disk full, permission lost, I/O error: may pass, so the event is sent again."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(f"The folder store failed: {error.strerror}.") from error


def _identity(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns:x}-{found.st_ino:x}-{found.st_size:x}"


def _fill(fd: int, data: bytes | Path) -> None:
    with os.fdopen(os.dup(fd), "wb") as out:
        if isinstance(data, Path):
            with data.open("rb") as source:
                shutil.copyfileobj(source, out)
        else:
            out.write(data)
    os.fsync(fd)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
