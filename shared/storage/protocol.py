"""The object store as the product sees it: whole objects, conditional writes, listings, links.

Two implementations exist, `shared.storage.local` (a folder) and `shared.storage.s3` (boto3), and one test
class proves both. Knows no network and no file system itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

Write: TypeAlias = Callable[[int, bytes], None]
"""Takes a piece of an object: its position in the object, its bytes."""


@dataclass(frozen=True)
class ObjectInfo:
    """What a store knows of an object without reading it."""

    key: str
    size: int
    """Bytes."""
    etag: str
    """Opaque; changes whenever the object is written. Never compared to a digest."""
    modified: float
    """Seconds since the epoch."""
    content_type: str = "application/octet-stream"
    metadata: Mapping[str, str] = field(default_factory=dict)
    """User metadata; names are lower-case letters, digits and hyphens."""


@dataclass(frozen=True)
class Page:
    """One page of a listing, keys in UTF-8 byte order (some S3 servers sort folder by folder instead)."""

    objects: tuple[ObjectInfo, ...]
    """Without content type and metadata (a listing does not carry them)."""
    prefixes: tuple[str, ...]
    """Common prefixes, each ending in the delimiter; empty without one."""
    cursor: str
    """Opaque; pass as `cursor` for the next page. Empty when this was the last."""


class ObjectStore(Protocol):
    """Errors: ObjectNotFoundError, PreconditionFailedError, StoreAccessDeniedError (never pass by themselves),
    StoreUnavailableError (may pass; already retried inside). Keys are checked: InvalidKeyError.
    """

    def get(self, key: str, *, limit: int | None = None) -> tuple[bytes, ObjectInfo]:
        """Bytes and info of one version of the object. PayloadTooLargeError when it is over `limit` bytes, unread."""
        ...

    def head(self, key: str) -> ObjectInfo: ...

    def put(self, key: str, data: bytes, *, content_type: str = ..., metadata: Mapping[str, str] = ...) -> ObjectInfo:
        """Write unconditionally; readers see the old or the new object, never a part."""
        ...

    def create(
        self, key: str, data: bytes, *, content_type: str = ..., metadata: Mapping[str, str] = ...
    ) -> ObjectInfo:
        """Write only if the key is free (If-None-Match: *); of several writers exactly one wins."""
        ...

    def replace(
        self, key: str, data: bytes, etag: str, *, content_type: str = ..., metadata: Mapping[str, str] = ...
    ) -> ObjectInfo:
        """Write only over the version `etag` (If-Match). A missing object is PreconditionFailedError."""
        ...

    def delete(self, key: str) -> None:
        """No error when there is nothing to delete."""
        ...

    def list(self, prefix: str, *, cursor: str = "", limit: int = 1000, delimiter: str = "") -> Page:
        """Raises InvalidCursorError where the store can tell that it never gave the cursor out."""
        ...

    def upload(self, path: Path, key: str, *, content_type: str = ..., metadata: Mapping[str, str] = ...) -> ObjectInfo:
        """Store a file of any size (multipart on S3) without holding it in memory."""
        ...

    def download(self, key: str, path: Path) -> ObjectInfo:
        """Fetch into `path` (replaced atomically) without holding it in memory."""
        ...

    def read_range(self, key: str, start: int, size: int, write: Write, *, etag: str = "") -> ObjectInfo:
        """Give `size` bytes from `start` on (fewer where the object ends) to `write`, piece by piece and in order.

        The info is that of the whole object. With `etag` only of that version: PreconditionFailedError for another,
        so that parts read one by one are parts of one object. A broken connection goes on where it broke.
        """
        ...

    def link(self, key: str, seconds: int, *, filename: str = "") -> str:
        """An address that gives the object for `seconds`: presigned https on S3, a `file:` address on a folder."""
        ...
