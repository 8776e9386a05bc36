"""Builds a target of the Dockerfile without an engine: each RUN by this machine's own Python, below a /srv of its own.

What the Dockerfile starts from is played by this machine, which must be a Debian with Python and pip, and whose user
must be root; everything that the stages make lies below /srv, so a mount that only the command sees is enough.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.image.dockerfile_stages import Stage, Step, lineage

BASE_PYTHON = Path(getattr(sys, "_base_executable", sys.executable))
SYSTEM = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
IN_ITS_OWN_SRV = 'mount --bind "$1" /srv && cd "$2" && exec /bin/sh -c "$3"'


@dataclass(frozen=True)
class Made:
    """A stage: its files, and what an image says beside them."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = ""

    def at(self, path: str) -> Path:
        return self.folder / (Path(self.workdir) / path).relative_to("/")


class Builder:
    def __init__(self, stages: dict[str, Stage], context: Path, work: Path) -> None:
        self._stages = stages
        self._context = context
        self._work = work
        self._made: dict[str, Made] = {}

    def build(self, target: str) -> Made:
        """Stages that start from another go on in its folder: here each is gone on with once."""
        if target not in self._made:
            oldest, *_ = lineage(self._stages, target)
            made = Made(self._work / oldest.name)
            (made.folder / "srv").mkdir(parents=True)
            for stage in lineage(self._stages, target):
                for step in stage.steps:
                    made = self._do(made, step)
            self._made[target] = made
        return self._made[target]

    def _do(self, made: Made, step: Step) -> Made:
        match step.word:
            case "ENV":
                return replace(made, environ=made.environ | step.pairs)
            case "USER":
                return replace(made, user=step.values[0])
            case "WORKDIR":
                made.at(step.values[0]).mkdir(parents=True, exist_ok=True)
                return replace(made, workdir=step.values[0])
            case "COPY":
                self._copy(made, step)
            case "RUN":
                run(made, step.values[0])
        return made

    def _copy(self, made: Made, step: Step) -> None:
        *names, to = step.values
        source = self.build(step.source_stage).folder if step.source_stage else self._context
        target = made.at(to)
        for name in names:
            for path in sorted(source.glob(name.strip("/"))) if name.strip("/") else [source]:
                if path.is_dir():
                    shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True, copy_function=os.link)
                else:
                    target.mkdir(parents=True, exist_ok=True)
                    assert to.endswith("/"), "several files go into a folder"
                    shutil.copy2(path, target)


def run(made: Made, command: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environ |= {"PATH": os.pathsep.join((str(BASE_PYTHON.parent), *SYSTEM)), **made.environ}
    unshared = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", IN_ITS_OWN_SRV, "run"]
    done = subprocess.run(
        [*unshared, str(made.folder / "srv"), made.workdir, command],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
