"""The Dockerfile as BuildKit's own parser reads it: stages by name. An instruction not known here is an error."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import dockerfile

ROOT = Path(__file__).resolve().parents[2]
KNOWN = frozenset({"COPY", "ENV", "EXPOSE", "LABEL", "RUN", "USER", "WORKDIR"})


@dataclass(frozen=True)
class Step:
    word: str
    values: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @property
    def source_stage(self) -> str:
        """Of a COPY; empty: the context."""
        return next((flag.removeprefix("--from=") for flag in self.flags if flag.startswith("--from=")), "")

    @property
    def pairs(self) -> dict[str, str]:
        """Of an ENV or LABEL."""
        plain = ["".join(shlex.split(value)) for value in self.values]
        return dict(zip(plain[::2], plain[1::2], strict=True))


@dataclass(frozen=True)
class Stage:
    name: str
    base: str
    steps: tuple[Step, ...]


def read(path: Path = ROOT / "Dockerfile") -> dict[str, Stage]:
    stages: dict[str, Stage] = {}
    for command in dockerfile.parse_file(str(path)):
        if command.cmd == "FROM":
            base, word, name = command.value
            assert word.upper() == "AS", "every stage has a name"
            stages[name] = Stage(name, base, ())
        else:
            assert command.cmd in KNOWN, f"line {command.start_line}: {command.cmd}"
            step = Step(command.cmd, tuple(command.value), tuple(command.flags))
            stages[name] = Stage(name, stages[name].base, (*stages[name].steps, step))
    return stages


def lineage(stages: dict[str, Stage], target: str) -> list[Stage]:
    """A stage and what it was made from, the oldest first."""
    stage = stages[target]
    return [*(lineage(stages, stage.base) if stage.base in stages else []), stage]
