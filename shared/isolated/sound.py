"""Sound from outside encoded anew in a process of its own, held to limits: `shared.video.sound.transcode`, run there.

A process for each track: it is rare. It gets two open files, the number of a track and an encoder's name, and nothing
of our environment. Knows processes and the error tree.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from logging import getLogger
from pathlib import Path

from shared.errors import TransientError, WakeswapError
from shared.isolated.limits import Caps
from shared.rejections import MediaCorruptError

log = getLogger(__name__)

_BOOT = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
importlib.import_module("shared.isolated.sound_child").main(*sys.argv[2:])
"""
_ROOT = str(Path(__file__).resolve().parents[2])
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_MB = 2**20
REFUSED = 3
"""Exit code for sound that cannot be decoded."""


def caps(size: int) -> Caps:
    """For the sound of a file of `size` bytes: an hour of stereo takes some 40 s of CPU, a file of 1 GB lasts hours."""
    return Caps(512 * _MB, 60 + size // 500_000, 64 * _MB + 16 * size)


def transcode(source: Path, index: int, name: str, out: Path) -> None:
    """As `shared.video.sound.transcode`. Raises MediaCorruptError also for sound that no decoder gets through."""
    limits = caps(source.stat().st_size)
    with source.open("rb") as held, out.open("w+b") as written:
        numbers = (held.fileno(), written.fileno())
        path = json.dumps([_ROOT, *map(os.path.abspath, sys.path)])
        loader = {variable: os.environ[variable] for variable in _LOADER if variable in os.environ}
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own words
            [sys.executable, "-I", "-B", "-c", _BOOT, path, *map(str, numbers), str(index), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=numbers,
            env=_ENVIRONMENT | loader,
            start_new_session=True,
        )
        try:
            ended = process.wait(limits.wall)
        except subprocess.TimeoutExpired:
            ended = -signal.SIGALRM
        finally:
            process.kill()
            process.wait()
    _check(ended)


def _check(ended: int) -> None:
    if ended == 0:
        return
    if ended == -signal.SIGKILL:
        raise TransientError("This machine lacks the memory to read the sound.")
    if ended == REFUSED or ended < 0:
        log.warning("sound could not be decoded", extra={"ended": ended})
        raise MediaCorruptError("The sound of the video cannot be decoded.")
    raise WakeswapError("The sound's encoder has a bug.")
