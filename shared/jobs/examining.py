"""A look at what a job is asked for with, before there is one: what it is, how large, and whether it can ever work.

Pictures are looked at in memory, two at a time. A target that may move is looked at in a file, in a process of its
own, however large it is. Loads no decoder. Knows the tenant's limits, the headers' and the videos' readers.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from shared.events.choices import Options
from shared.events.payloads import ObjectRef
from shared.imaging.probe import Limits
from shared.isolated.facts import facts
from shared.isolated.headers import probe
from shared.jobs import options
from shared.rejections import ImageTooLargeError, MediaCorruptError, MediaTruncatedError, VideoTooLargeError
from shared.tenancy.tenant import Tenant
from shared.video import sniff
from shared.video.facts import Facts
from shared.video.source import Source

IMAGE, VIDEO = "image", "video"
"""Values of Job.media."""
AT_ONCE = threading.BoundedSemaphore(2)
"""Pictures held in memory at one time by this process, whatever the number of requests."""
FILMS_AT_ONCE = threading.BoundedSemaphore(2)
"""Videos that are looked at, and fetched for it, at one time."""


def picture(tenant: Tenant, key: str, data: bytes) -> ObjectRef:
    """The reference to a picture's bytes. Raises RejectedError with the reason why they can never work."""
    if len(data) > tenant.policy.max_bytes:
        raise too_large(tenant)
    content_type = probe(data, Limits(max_pixels=tenant.policy.max_pixels)).content_type
    return ObjectRef(key, hashlib.sha256(data).hexdigest(), len(data), content_type)


def source(tenant: Tenant, key: str, file: BinaryIO) -> ObjectRef:
    """The reference to the picture in a file; raises as `picture`."""
    with AT_ONCE:
        file.seek(0)
        return picture(tenant, key, file.read(tenant.policy.max_bytes + 1))


def target(tenant: Tenant, key: str, file: BinaryIO, chosen: Options) -> tuple[ObjectRef, str]:
    """The reference to a picture or a video in a file, and which it is: `image` or `video`.

    Raises RejectedError with the reason why it, or an option for it, can never work.
    """
    file.seek(0)
    if not sniff.may_move(file.read(sniff.HEAD)):
        options.suit(chosen)
        return source(tenant, key, file), IMAGE
    with FILMS_AT_ONCE, named(file) as path:
        kind = _kind(path)
        if kind is None:
            options.suit(chosen)
            return source(tenant, key, file), IMAGE
        size = path.stat().st_size
        if size > tenant.policy.max_video_bytes:
            raise video_too_large(tenant)
        options.suit(chosen, kind.name)
        _whole(_facts(tenant, path), chosen)
        return ObjectRef(key, _digest(path), size, kind.content_type), VIDEO


@contextmanager
def named(file: BinaryIO) -> Iterator[Path]:
    """A path of a file's bytes as long as the body runs: the file itself where the system has a name for it."""
    file.flush()
    if sys.platform == "linux" and _has_descriptor(file):
        yield Path(f"/proc/self/fd/{file.fileno()}")
        return
    with tempfile.NamedTemporaryFile() as copy:
        file.seek(0)
        shutil.copyfileobj(file, copy)
        copy.flush()
        yield Path(copy.name)


def too_large(tenant: Tenant) -> ImageTooLargeError:
    limit = tenant.policy.max_bytes
    return ImageTooLargeError(f"A picture has at most {limit} bytes.", context={"limit_bytes": limit})


def video_too_large(tenant: Tenant) -> VideoTooLargeError:
    limit = tenant.policy.max_video_bytes
    return VideoTooLargeError(f"A video has at most {limit} bytes.", context={"limit_bytes": limit})


def _has_descriptor(file: BinaryIO) -> bool:
    try:
        return file.fileno() >= 0
    except OSError:  # of a file in memory: io.UnsupportedOperation is one
        return False


def _kind(path: Path) -> sniff.Kind | None:
    with path.open("rb", buffering=0) as file:
        return sniff.sniff(Source(file.fileno()))


def _facts(tenant: Tenant, path: Path) -> Facts:
    policy = tenant.policy
    return facts(path, max_pixels=policy.max_pixels, max_seconds=policy.max_seconds, max_frames=policy.max_frames)


def _whole(found: Facts, chosen: Options) -> None:
    """Raises MediaTruncatedError and MediaCorruptError, unless the job is to be finished all the same."""
    if chosen.damaged == "finish":
        return
    if "truncated" in found.damage:
        raise MediaTruncatedError("The video breaks off.")
    if found.damage:
        raise MediaCorruptError("The video has damaged frames.")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
