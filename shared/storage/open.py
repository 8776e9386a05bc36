"""From an address to a store. boto3 is imported only for an s3 address."""

from __future__ import annotations

from pathlib import Path

from shared.errors import ConfigError
from shared.storage.local import LocalStore
from shared.storage.protocol import ObjectStore


def open_store(url: str) -> ObjectStore:
    """`file:<folder>` or `s3://<bucket>[/<prefix>]`. Raises ConfigError for anything else."""
    scheme, _, rest = url.partition(":")
    if scheme == "file" and rest:
        return LocalStore(Path(rest.removeprefix("//")))
    if scheme == "s3" and rest.startswith("//"):
        from shared.storage.s3 import S3Store

        bucket, _, prefix = rest[2:].partition("/")
        prefix = prefix.strip("/")
        if bucket and all(part not in ("", ".", "..") for part in prefix.split("/") if prefix):
            return S3Store(bucket, f"{prefix}/" if prefix else "")
    raise ConfigError(f"Not a store address: {url!r}; use file:<folder> or s3://<bucket>[/<prefix>].")
