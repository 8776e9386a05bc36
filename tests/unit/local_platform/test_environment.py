"""What a container sees: expansion, order of variables, volumes as folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from infra.local.serving.environment import (
    Configs,
    MissingReferenceError,
    container_variables,
    expand,
    fill_volumes,
    mount_folders,
    rewrite,
)
from infra.local.serving.model import Container, EnvSource, EnvVar, KeyRef, Mount, Volume

CONFIGS = Configs({("ConfigMap", "c"): {"A": "from config", "B": "b"}, ("Secret", "s"): {"K": "secret"}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)/$(A)", "1/1"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$A ${A} $( A)", "$A ${A} $( A)"),
        ("cost: 5$", "cost: 5$"),
    ],
)
def test_expand(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


def test_variables_in_kubernetes_order() -> None:
    container = Container(
        name="c",
        command=("x",),
        env_from=(EnvSource("ConfigMap", "c"), EnvSource("Secret", "s", prefix="P_")),
        env=(
            EnvVar("B", "own $(A)"),
            EnvVar("C", "$(LATER) $(PORT)"),
            EnvVar("LATER", "x"),
            EnvVar("D", ref=KeyRef("Secret", "s", "absent", optional=True)),
            EnvVar("E", "$(OVER)"),
        ),
    )
    found = container_variables(container, CONFIGS, {"PORT": "80"}, {"OVER": "set", "A": "set too"})
    assert found == {
        "PORT": "80",
        "A": "set too",
        "B": "own set too",
        "P_K": "secret",
        "C": "$(LATER) 80",
        "LATER": "x",
        "E": "set",
        "OVER": "set",
    }


@pytest.mark.parametrize(
    ("container", "message"),
    [
        (Container("c", ("x",), env_from=(EnvSource("ConfigMap", "absent"),)), "ConfigMap absent does not exist"),
        (Container("c", ("x",), env=(EnvVar("A", ref=KeyRef("Secret", "s", "Z")),)), "Secret s has no key Z"),
    ],
)
def test_missing_references_are_named(container: Container, message: str) -> None:
    with pytest.raises(MissingReferenceError, match=message):
        container_variables(container, CONFIGS, {}, {})


def test_optional_references_may_be_missing() -> None:
    container = Container("c", ("x",), env_from=(EnvSource("ConfigMap", "absent", optional=True),))
    assert container_variables(container, CONFIGS, {}, {}) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/models", "/s/m"),
        ("/models/a.onnx", "/s/m/a.onnx"),
        ("/models/deep/a", "/s/d/a"),
        ("/modelsx", "/modelsx"),
        ("file:/models", "file:/models"),
        ("models", "models"),
    ],
)
def test_values_that_begin_with_a_mount_path_are_rewritten(text: str, expected: str) -> None:
    assert rewrite(text, {"/models": Path("/s/m"), "/models/deep": Path("/s/d")}) == expected


def test_volumes_become_folders(tmp_path: Path) -> None:
    volumes = (
        Volume("e", "emptyDir"),
        Volume("c", "ConfigMap", "c"),
        Volume("s", "Secret", "s", items=(("K", "deep/key"),)),
    )
    fill_volumes(volumes, CONFIGS, tmp_path)
    assert list((tmp_path / "e").iterdir()) == []
    assert (tmp_path / "c" / "A").read_text() == "from config"
    assert (tmp_path / "s" / "deep" / "key").read_text() == "secret"
    assert (tmp_path / "s" / "deep" / "key").stat().st_mode & 0o777 == 0o600
    container = Container("c", ("x",), mounts=(Mount("e", "/data", "sub"),))
    assert mount_folders(container, tmp_path) == {"/data": tmp_path / "e" / "sub"}


def test_a_volume_of_a_folder_is_the_folder(tmp_path: Path) -> None:
    source, root = tmp_path / "state" / "tenants", tmp_path / "volumes" / "pod"
    configs = Configs({("ConfigMap", "t"): {}}, {("ConfigMap", "t"): source})
    fill_volumes((Volume("t", "ConfigMap", "t", optional=True),), configs, root)
    (source / "acme.yaml").write_text("{}")
    assert [path.name for path in (root / "t").iterdir()] == ["acme.yaml"], "also what comes later"
    shutil.rmtree(root)
    assert (source / "acme.yaml").exists(), "the end of a pod takes its volumes, not the folder"
    with pytest.raises(MissingReferenceError, match="all files"):
        fill_volumes((Volume("t", "ConfigMap", "t", items=(("a", "b"),)),), configs, tmp_path / "other")


def test_a_volume_of_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingReferenceError, match="ConfigMap c has no key Z"):
        fill_volumes((Volume("c", "ConfigMap", "c", items=(("Z", "z"),)),), CONFIGS, tmp_path)
