"""An API server for the tests of the cluster's commands: the fake one, and with `-m cluster` the one of KUBECONFIG."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.tenants.objects import Key, name_of
from tests.servers.kubernetes_api import KubernetesApi
from tests.unit.tenants.clusters import Server, item


@pytest.fixture
def api(tmp_path: Path) -> Iterator[KubernetesApi]:
    with KubernetesApi() as api:
        yield api


@pytest.fixture
def fake(api: KubernetesApi, tmp_path: Path) -> Server:
    server = Server(api.kubeconfig(tmp_path), "", "wakeswap", "")
    server.put(item("v1", "Namespace", "", "wakeswap"))
    return server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both give the same answers. The real one is asked only where the marker is chosen: it may be anybody's."""
    if "server" in metafunc.fixturenames:
        chosen = "cluster" in metafunc.config.getoption("-m").split() and os.environ.get("KUBECONFIG")
        real = [pytest.param("real", marks=pytest.mark.cluster)] if chosen else []
        metafunc.parametrize("server", ["fake", *real], indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "fake":
        yield request.getfixturevalue("fake")
        return
    unique = f"test-{secrets.token_hex(4)}-"
    server = Server(Path(os.environ["KUBECONFIG"]), "", f"{unique}wakeswap", unique)
    server.put(item("v1", "Namespace", "", server.installation))
    yield server
    for namespace in server.cluster.list("v1", "Namespace"):
        name = name_of(namespace)
        if unique in name and (live := server.cluster.get("v1", Key("", "Namespace", "", name))):
            server.cluster.delete(live, dry_run=False)
