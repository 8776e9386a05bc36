"""What every Dockerfile here keeps to, beside what the parser asks for: faults by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.image.dockerfile_stages import Stage, Step, lineage

EXACT = re.compile(r"python:3\.\d+\.\d+-slim-[a-z]+")
SECRET = re.compile(r"(?i)(secret|passw|token|_key)")
CHECKED = ("--require-hashes", "--only-binary :all:", "--no-deps")


def faults(stages: dict[str, Stage], targets: tuple[str, ...]) -> list[str]:
    found = [fault for stage in stages.values() for fault in _of_stage(stage, stages)]
    found += [fault for target in targets for fault in _of_target(lineage(stages, target))]
    bases = {stage.base for stage in stages.values()} - stages.keys() - {"scratch"}
    return found + ["bases differ" for _ in range(len(bases) - 1)]


def _of_stage(stage: Stage, stages: dict[str, Stage]) -> Iterator[str]:
    if stage.base != "scratch" and stage.base not in stages and not EXACT.fullmatch(stage.base):
        yield "base without an exact version"
    for step in stage.steps:
        if step.word == "COPY" and step.source_stage and step.source_stage not in list(stages)[: _place(stage, stages)]:
            yield "copy from an image that is no stage above"
        if step.word == "WORKDIR" and not step.values[0].startswith("/"):
            yield "relative working directory"
        if step.word == "RUN":
            yield from _of_run(step)


def _of_run(step: Step) -> Iterator[str]:
    (command,) = step.values
    for part in command.split("&&"):
        if " pip " in part and " install" in part and not all(word in part for word in CHECKED):
            yield "installed without digests"
    if "|" in command or ";" in command:
        yield "the exit status of a part is lost"
    if re.search(r"\b(curl|wget|apt-get|sudo)\b", command):
        yield "fetches what nothing pins"


def _of_target(stages: list[Stage]) -> Iterator[str]:
    """Of an image that is started: made of files alone, by a user who may do nothing."""
    steps = [step for stage in stages for step in stage.steps]
    if stages[0].base != "scratch":
        yield "starts from a whole system"
    if any(step.word == "RUN" for step in steps):
        yield "commands run in the image itself"
    users = [step.values[0] for step in steps if step.word == "USER"]
    if not users or not re.fullmatch(r"[1-9]\d{4,}:[1-9]\d{4,}", users[-1]):
        yield "not a numeric user without rights"
    if any(SECRET.search(name) for step in steps if step.word == "ENV" for name in step.pairs):
        yield "secret in the environment"
    if any(flag.startswith("--chown") for step in steps for flag in step.flags):
        yield "the user owns its own code"


def _place(stage: Stage, stages: dict[str, Stage]) -> int:
    return list(stages).index(stage.name)
