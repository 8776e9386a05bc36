"""The Dockerfile by its text: what is pinned, what is left out, and that both images are made of the same."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from infra.image import pins, rootfs
from tests.image import context
from tests.image.dockerfile_stages import ROOT, lineage, read
from tests.image.rules import faults

TARGETS = ("cpu", "gpu")
IMAGE = ROOT / "infra/image"
TEXT = (ROOT / "Dockerfile").read_text()


def names(path: Path) -> dict[str, str]:
    """Distributions and versions of a requirements file and of those that it includes."""
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            found |= names(path.parent / text.removeprefix("-r ").strip())
        elif text:
            name, _, version = text.split()[0].partition("==")
            found[re.sub(r"\[.*\]", "", name).lower().replace("_", "-")] = version
    return found


def test_the_dockerfile_keeps_to_the_rules() -> None:
    assert faults(read(), TARGETS) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("python:3.11.14-slim-bookworm AS packages", "python:3.11 AS packages", "base without an exact version"),
        ("python:3.11.14-slim-bookworm AS code", "python:3.12.1-slim-bookworm AS code", "bases differ"),
        ("COPY --from=root-cpu", "COPY --from=busybox", "copy from an image that is no stage above"),
        ("WORKDIR /srv/build", "WORKDIR build", "relative working directory"),
        ("--require-hashes", "", "installed without digests"),
        ("-q --invalidation-mode", "-q | tee log; true --invalidation-mode", "the exit status of a part is lost"),
        ("RUN python3 -m compileall", "RUN curl -o x y && python3 -m compileall", "fetches what nothing pins"),
        ("FROM scratch AS image", "FROM python:3.11.14-slim-bookworm AS image", "starts from a whole system"),
        ("USER 65532:65532", "USER 65532:65532\nRUN true", "commands run in the image itself"),
        ("USER 65532:65532", "USER wakeswap", "not a numeric user without rights"),
        ("USER 65532:65532", "", "not a numeric user without rights"),
        ("LANG=C.UTF-8", "LANG=C.UTF-8 API_TOKEN=x", "secret in the environment"),
        ("COPY --from=code", "COPY --chown=65532 --from=code", "the user owns its own code"),
    ],
)
def test_a_dockerfile_that_does_not_is_caught(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert old in TEXT
    (tmp_path / "Dockerfile").write_text(TEXT.replace(old, new))
    assert fault in faults(read(tmp_path / "Dockerfile"), TARGETS)


def test_the_user_is_the_one_that_the_image_knows() -> None:
    users = {step.values[0] for step in read()["image"].steps if step.word == "USER"}
    assert users == {f"{rootfs.USER}:{rootfs.USER}"}


def test_both_images_differ_in_their_runtime_alone() -> None:
    stages = read()
    cpu, gpu = (list(stages[f"root-{target}"].steps) for target in TARGETS)
    assert gpu[-len(cpu) :] == cpu, "put together in the same way"
    last = {
        target: [replace(step, flags=tuple(flag.replace(target, "*") for flag in step.flags)) for step in made.steps]
        for target, made in ((target, stages[target]) for target in TARGETS)
    }
    added = [step for step in last["gpu"] if step not in last["cpu"]]
    assert [step.word for step in added] == ["ENV"]
    assert all(name.startswith("NVIDIA_") for name in added[0].pairs)
    assert [step for step in last["gpu"] if step not in added] == last["cpu"]
    assert [stage.name for stage in lineage(stages, "gpu")][:-1] == [stage.name for stage in lineage(stages, "cpu")][
        :-1
    ]


def test_the_gpus_set_takes_the_place_of_onnxruntime_and_of_nothing_else() -> None:
    cpu, gpu = names(IMAGE / "pins.txt"), names(IMAGE / "pins-gpu.txt")
    (removal,) = re.findall(r"uninstall --yes (\S+)", TEXT)
    assert removal == "onnxruntime"
    assert removal in cpu
    assert cpu.keys() & gpu.keys() == set()
    assert {name for name in gpu if not name.startswith("nvidia-")} == {"onnxruntime-gpu"}


@pytest.mark.parametrize(
    ("source", "pinned", "exact"),
    [
        ("requirements.txt", "pins.txt", False),
        ("tools.txt", "tools-pins.txt", False),
        ("requirements-gpu.txt", "pins-gpu.txt", True),
    ],
)
def test_what_is_asked_for_is_what_is_pinned(source: str, pinned: str, exact: bool) -> None:
    """Red after a requirement was changed: `make pins`."""
    asked, found = names(IMAGE / source), names(IMAGE / pinned)
    assert asked.items() <= found.items()
    assert not exact or asked == found
    lines = (IMAGE / pinned).read_text().splitlines()[1:]
    assert all(re.fullmatch(r"\S+==\S+( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)


def test_every_stage_is_in_the_image_with_what_it_needs() -> None:
    included = (IMAGE / "requirements.txt").read_text()
    for path in ROOT.glob("functions/*/requirements.txt"):
        assert f"-r ../../{path.relative_to(ROOT)}\n" in included
    assert f"python:{pins.PYTHON}." in TEXT


def test_a_build_sees_what_is_copied_and_nothing_else() -> None:
    steps = [step for stage in read().values() for step in stage.steps if step.word == "COPY" and not step.source_stage]
    copied = [Path(source) for step in steps for source in step.values[:-1]]
    unused = {
        path
        for path in map(Path, context.files())
        if not any(path.match(str(source)) or source in path.parents for source in copied)
    }
    assert unused == set()
    assert all(any(ROOT.glob(str(source))) for source in copied)
    secrets = (".env", "tests/data/jwt/tokens.json", ".git/config", ".wakeswap/models/x", "shared/__pycache__/x.pyc")
    for secret in secrets:
        assert context.is_ignored(secret)
    assert not context.is_ignored("functions/swap/main.py")


def test_buildpacks_see_what_the_processes_need() -> None:
    project = tomllib.loads((ROOT / "project.toml").read_text())
    included = {line.strip("/") for line in project["io"]["buildpacks"]["include"]}
    assert all((ROOT / path).exists() for path in included)
    copied = {source for step in read()["code"].steps if step.word == "COPY" for source in step.values[:-1]}
    assert copied | {"Procfile", "requirements.txt", "infra/image/requirements.txt"} == included
    (environ,) = project["io"]["buildpacks"]["build"]["env"]
    assert environ["value"].startswith(pins.PYTHON)
