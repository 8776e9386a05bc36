"""`python -m infra.platform`: what it finds, what it says, and with which status."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.platform import cli, known
from infra.platform.check import findings
from infra.platform.configs import AUTOSCALER, DEFAULTS, FEATURES, Configs
from infra.platform.stack import Stack

DATA = Path(__file__).parents[2] / "data/knative"
STACK = DATA / "good.yaml"
ALL = {"kubernetes.podspec-init-containers": "Enabled", "kubernetes.podspec-nodeselector": "allowed",
       "kubernetes.podspec-tolerations": "enabled"}  # fmt: skip


def configs(tmp_path: Path, features: dict[str, str], autoscaler: dict[str, str]) -> Path:
    file = tmp_path / "configs.yaml"
    docs = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": config.name, "namespace": config.namespace},
         "data": data}
        for config, data in ((FEATURES, features), (AUTOSCALER, autoscaler))
    ]  # fmt: skip
    file.write_text(yaml.safe_dump_all(docs))
    return file


def test_a_cluster_with_everything_lacks_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configs(tmp_path, ALL, {"allow-zero-initial-scale": "True"})
    assert cli.main(["check", str(STACK), "--config", str(file)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith(", 0 missing\n")


def test_what_is_missing_is_told_with_who_needs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configs(tmp_path, {**ALL, "kubernetes.podspec-tolerations": "enable"}, {})
    assert cli.main(["check", str(STACK), "--config", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "config-features (knative-serving): kubernetes.podspec-tolerations is disabled, must be enabled"
        "   # Service/swap: tolerations",
        "config-autoscaler (knative-serving): allow-zero-initial-scale is false, must be true"
        "   # Service/swap: initial-scale",
        "ConfigMap config-features (knative-serving): kubernetes.podspec-tolerations: is 'enable'; Knative reads "
        "allowed, disabled, enabled",
    ]
    assert cli.main(["check", str(STACK), "--config", str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [row["key"] for row in told["missing"]] == ["kubernetes.podspec-tolerations", "allow-zero-initial-scale"]
    assert [row["rule"] for row in told["ignored"]] == ["flag-value"]


def test_a_timeout_over_the_clusters_limit_is_missing_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = tmp_path / "stack.yaml"
    stack.write_text(STACK.read_text().replace("timeoutSeconds: 300", "timeoutSeconds: 900"))
    file = configs(tmp_path, ALL, {"allow-zero-initial-scale": "true"})
    assert cli.main(["check", str(stack), "--config", str(file)]) == 1
    assert "max-revision-timeout-seconds is 600, must be at least 900" in capsys.readouterr().out
    assert cli.main(["flags", str(stack)]) == 0
    made = {doc["metadata"]["name"]: doc["data"] for doc in yaml.safe_load_all(capsys.readouterr().out)}
    assert made["config-defaults"] == {"max-revision-timeout-seconds": "900"}


def test_what_it_makes_is_what_it_asks_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["flags", str(STACK)]) == 0
    file = tmp_path / "flags.yaml"
    file.write_text(capsys.readouterr().out)
    assert cli.main(["check", str(STACK), "--config", str(file)]) == 0
    names = [doc["metadata"]["name"] for doc in yaml.safe_load_all(file.read_text())]
    assert names == ["config-features", "config-autoscaler"]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that answers with files of this folder: `<namespace>-<name>.yaml`, or says that there is none."""
    answers = tmp_path / "cluster"
    answers.mkdir()
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\ncat "{answers}/$5-$3.yaml" || {{ echo "no answer" >&2; exit 1; }}\n')
    program.chmod(0o755)
    monkeypatch.setattr(cli, "kubectl", lambda: str(program))
    return answers


def test_it_asks_the_cluster(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for config in DEFAULTS:
        doc = {"kind": "ConfigMap", "metadata": {"name": config.name, "namespace": config.namespace}, "data": {}}
        (cluster / f"{config.namespace}-{config.name}.yaml").write_text(yaml.safe_dump(doc))
    assert cli.main(["check", str(STACK)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 4
    doc = {"kind": "ConfigMap", "metadata": {"name": FEATURES.name, "namespace": FEATURES.namespace}, "data": ALL}
    (cluster / f"{FEATURES.namespace}-{FEATURES.name}.yaml").write_text(yaml.safe_dump(doc))
    assert cli.main(["check", str(STACK)]) == 1
    assert "allow-zero-initial-scale" in capsys.readouterr().out


def test_a_cluster_that_does_not_answer_is_no_answer(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(STACK)]) == 2
    assert "no answer" in capsys.readouterr().err


@pytest.mark.skipif("KUBECONFIG" not in os.environ, reason="needs a cluster with Knative")
def test_a_real_cluster_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(STACK)]) in (0, 1)


def test_lint_says_what_is_wrong_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", str(STACK)]) == 0
    bad = tmp_path / "bad.yaml"
    bad.write_text(STACK.read_text().replace("max-scale", "max-scal"))
    capsys.readouterr()
    assert cli.main(["lint", str(bad)]) == 1
    assert "[autoscaling-key]" in capsys.readouterr().out
    assert cli.main(["lint", str(bad), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert {row["rule"] for row in rows} == {"autoscaling-key", "max-scale"}


def test_manifests_that_cannot_be_read_are_no_fault_of_the_cluster(tmp_path: Path) -> None:
    assert cli.main(["lint", str(tmp_path / "none.yaml")]) == 2


def test_what_knative_does_not_read_is_its_default() -> None:
    written = Configs({FEATURES: {"kubernetes.podspec-affinity": "yes", "kubernetes.podspec-tolerations": "Allowed"}})
    assert written.value(FEATURES, "kubernetes.podspec-affinity") == "disabled"
    assert written.value(FEATURES, "kubernetes.podspec-tolerations") == "allowed"
    assert written.value(AUTOSCALER, "enable-scale-to-zero") == "true"


def lint(tmp_path: Path, text: str) -> int:
    (tmp_path / "overlay.yaml").write_text(text)
    return cli.main(["lint", str(tmp_path / "overlay.yaml")])


def test_lint_sees_what_a_cluster_takes_and_drops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt field of an init step, which is an open object to Knative; and what its schema refuses."""
    stack = STACK.read_text()
    for old, new, said in (
        ("          volumeMounts:\n", "          volumeMount:\n", "initContainers[0].volumeMount"),
        ("automountServiceAccountToken", "automountServiceAccountTokn", "automountServiceAccountTokn"),
        ("responseStart", "responseStart", ""),
    ):
        assert lint(tmp_path, stack.replace(old, new, 1)) == int(bool(said))
        assert said in capsys.readouterr().out


def test_lint_says_so_where_it_cannot_look_at_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "PACKAGE", "kubernetes_validate_is_not_here")
    known.schemas.cache_clear()
    try:
        assert lint(tmp_path, STACK.read_text()) == 0
        assert "Fields were not looked at" in capsys.readouterr().err
    finally:
        known.schemas.cache_clear()


@pytest.mark.parametrize("text", ["", "---\n---\n", "a: [", "- 1", '"x"', "a: &a [*a]", "!!python/name:os.system x"])
def test_a_file_that_holds_no_manifests_is_not_one_without_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert lint(tmp_path, text) == 2
    assert capsys.readouterr().err
    assert cli.main(["lint", str(tmp_path / "none")]) == 2


WRONG: tuple[object, ...] = ([], {"a": None}, -1, "x" * 300)


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner: Iterable[tuple[Any, object]] = ()
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG, ids=["list", "object", "number", "text"])
def test_whatever_stands_in_a_field_the_rules_go_on(wrong: object) -> None:
    """Each field in turn: what is of the wrong type is a finding, or nothing, and never the end of the run."""
    whole = list(yaml.safe_load_all(STACK.read_text()))
    schemas = known.schemas()
    for index, doc in enumerate(whole):
        for *path, last in places(doc):
            docs = copy.deepcopy(whole)
            holder = docs[index]
            for key in path:
                holder = holder[key]
            holder[last] = copy.deepcopy(wrong)
            stack = Stack(docs, Configs.of(docs), schemas)
            findings(stack)
            cli.manifests(stack)
