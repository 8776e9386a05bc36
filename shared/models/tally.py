"""Which models were in the cache and which had to be fetched, by what a fetch tells while it runs.

The init step has no /metrics that anybody could read before it ends, so it leaves its tally in a file for the function
beside it. Knows the steps of a fetch and JSON.
"""

from __future__ import annotations

import json
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from shared.models.progress import Progress, Step, silent

if TYPE_CHECKING:
    from shared.models.residents import Meter

log = getLogger(__name__)

INIT, STAGE = "init", "stage"
"""Who fetched: the init step before the function, or the function itself while a job waited."""


class Tally:
    """A Progress. Not for several threads."""

    def __init__(self, shown: Progress = silent) -> None:
        """`shown` is told everything too."""
        self._shown = shown
        self._bytes: dict[str, dict[str, int]] = {}
        self._ready: dict[str, bool] = {}

    @classmethod
    def left(cls, path: Path) -> Tally:
        """What an init step left; nothing when there is no such file, or none that can be read."""
        tally = cls()
        with suppress(OSError, ValueError, TypeError, AttributeError, KeyError):
            for model, facts in json.loads(path.read_text()).items():
                tally._bytes[str(model)] = {str(name): int(size) for name, size in facts["files"].items()}
                tally._ready[str(model)] = bool(facts["hit"])
        return tally

    def __call__(self, step: Step) -> None:
        if step.action == "fetch":
            self._bytes.setdefault(step.name, {})[step.file] = step.done
        elif step.action == "wait":  # another process fetches it: this one waits as if it did
            self._bytes.setdefault(step.name, {})
        elif step.action == "ready":
            self._ready[step.name] = step.name not in self._bytes
        self._shown(step)

    def count(self, meter: Meter, where: str) -> None:
        """`where`: INIT or STAGE."""
        for model, hit in self._ready.items():
            meter.count("cache_hits" if hit else "cache_misses", where=where, model=model)
            if fetched := sum(self._bytes.get(model, {}).values()):
                meter.count("fetch_bytes", fetched, where=where, model=model)

    def leave(self, path: Path) -> None:
        """For `left` of the function. A file that cannot be written costs figures, and no job."""
        facts = {model: {"hit": hit, "files": self._bytes.get(model, {})} for model, hit in self._ready.items()}
        try:
            path.write_text(json.dumps(facts))
        except OSError as error:
            log.warning("what was fetched cannot be told: %s", error)
