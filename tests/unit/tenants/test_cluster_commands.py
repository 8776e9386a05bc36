"""`python -m infra.tenants plan | diff | apply | delete | list`, and what they say when a cluster refuses."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.tenants import cli, cluster_commands, errors, rendering
from infra.tenants.objects import Object, name_of
from infra.tenants.spec import TenantSpec
from tests.servers.kubernetes_api import KINDS, READER, KubernetesApi
from tests.unit.tenants.clusters import DEDICATED, EVENTING, SERVING, Server, environment, item, rendered
from tests.unit.tenants.test_commands import Done, Run

ROOT = Path(__file__).resolve().parents[3]
PLAIN = "policy: {max_concurrent: 3}\n"


@pytest.fixture
def run(fake: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command on tmp_path/tenants and the fake server, with small manifests instead of an overlay's."""

    def small(asked: TenantSpec, overlay: Path) -> list[Object]:
        return rendered(asked.place)

    for name in [name for name in os.environ if name.startswith("WAKESWAP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "tenants").mkdir()
    monkeypatch.setenv("WAKESWAP_TENANTS_FOLDER", str(tmp_path / "tenants"))
    monkeypatch.setenv("KUBECONFIG", str(fake.kubeconfig))
    monkeypatch.setattr(rendering, "render", small)

    def command(*arguments: str) -> Done:
        status = cli.main(arguments)
        return Done(status, *capsys.readouterr())

    return command


def write(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "tenants" / f"{name}.yaml").write_text(text)


def test_plan_prints_what_apply_sends_and_asks_no_cluster(run: Run, tmp_path: Path, api: KubernetesApi) -> None:
    write(tmp_path, "acme", DEDICATED)
    before = list(api.requests)
    done = run("plan", "acme")
    objects = list(yaml.safe_load_all(done.out))
    assert done.status == 0
    assert objects[0]["kind"] == "Namespace"
    assert run("plan", "acme").out == done.out
    assert api.requests == before
    policy = run("plan", "acme", "--bucket-policy").json
    assert policy["Statement"][0]["Resource"] == ["arn:aws:s3:::wakeswap/dedicated/acme/*"]
    write(tmp_path, "beta", PLAIN)
    assert yaml.safe_load(run("plan", "beta").out)["data"] == {"beta.yaml": PLAIN}
    assert run("plan", "beta", "--bucket-policy").status == 1


def test_from_nothing_to_nothing(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "acme", DEDICATED)
    write(tmp_path, "beta", PLAIN)
    assert run("diff", "acme").status == cluster_commands.DIFFERENT
    assert "would be created\tNamespace tenant-acme" in run("apply", "acme", "--dry-run=server").out
    done = run("apply", "acme")
    assert (done.status, "created\tBroker tenant-acme/default" in done.out) == (0, True)
    assert "wakeswap-store has no values" in done.err
    assert run("apply", "beta").status == 0
    assert run("apply", "acme").out == "10 unchanged\n"
    nothing = run("diff", "acme")
    assert (nothing.status, nothing.out) == (0, "")
    write(tmp_path, "acme", DEDICATED + "# twice as fast\n")
    different = run("diff", "acme")
    assert different.status == cluster_commands.DIFFERENT
    assert [line for line in different.out.splitlines() if line[0] in "+-" and line[1] not in "+-"] == [
        "+    # twice as fast"
    ]
    rows = run("list", "--json").json
    assert [(row["name"], row["isolation"], row["namespace"]) for row in rows] == [
        ("acme", "dedicated", "tenant-acme"),
        ("beta", "shared", "wakeswap"),
    ]
    assert "would be deleted" in run("delete", "acme", "--dry-run=server").out
    kept = run("delete", "acme")
    assert "Kept: the namespace tenant-acme" in kept.err
    assert run("list", "--json").json[0]["state"] == "deleted, its data kept"
    refused = run("delete", "acme", "--data", "beta")
    assert (refused.status, "--data" in refused.err) == (1, True)
    assert run("delete", "acme", "--data", "acme").status == 0
    assert run("delete", "beta").err == "Kept: every object in the bucket.\n"
    assert run("list", "--json").json == []
    assert run("delete", "beta").status == 1


def test_values_of_secrets_are_never_shown(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "acme", DEDICATED)
    run("apply", "acme")
    file = tmp_path / "credentials"
    file.write_text("# of acme\nAWS_ACCESS_KEY_ID=AKIAXXXX\n\nAWS_SECRET_ACCESS_KEY=a=b+c/d\n")
    shown = run("diff", "acme", "--secret", f"wakeswap-store={file}")
    assert "+  AWS_SECRET_ACCESS_KEY: '***'" in shown.out
    assert "~ Secret tenant-acme/wakeswap-store: value of AWS_SECRET_ACCESS_KEY" in shown.out
    done = run("apply", "acme", "--secret", f"wakeswap-store={file}")
    assert (done.status, done.out) == (0, "changed\tSecret tenant-acme/wakeswap-store\n9 unchanged\n")
    file.write_text("AWS_SECRET_ACCESS_KEY=other\n")
    changed = run("diff", "acme", "--secret", f"wakeswap-store={file}")
    assert changed.out.endswith("~ Secret tenant-acme/wakeswap-store: value of AWS_SECRET_ACCESS_KEY\n")
    for each in (shown, done, changed):
        assert not any(secret in each.out + each.err for secret in ("a=b", "YT1i", "other", "AKIA"))


@pytest.mark.parametrize("text", ["", "# nothing\n", "no-equals\n", "=x\n", "a b=c\n"])
def test_a_file_of_values_is_checked_and_not_quoted(run: Run, tmp_path: Path, text: str) -> None:
    write(tmp_path, "acme", DEDICATED)
    file = tmp_path / "credentials"
    file.write_text(text)
    done = run("apply", "acme", "--secret", f"wakeswap-store={file}")
    assert done.status == 1
    assert done.err.startswith("--secret: ")
    for wrong in (f"wakeswap-nothing={file}", "wakeswap-store", f"wakeswap-store={tmp_path / 'none'}"):
        assert run("apply", "acme", "--secret", wrong).status == 1


def test_readiness(run: Run, tmp_path: Path, fake: Server, api: KubernetesApi) -> None:
    write(tmp_path, "acme", DEDICATED)
    run("apply", "acme")
    assert run("list", "--json").json[0]["state"].startswith("3 of 3 not ready: Broker default (not seen")

    def become(kind: str, plural: str, name: str, **condition: str) -> None:
        kept = api.objects[(kind.rpartition("/")[0], plural, "tenant-acme")][name].value
        generation = kept["metadata"]["generation"]
        kept["status"] = {"observedGeneration": generation, "conditions": [{"type": "Ready", **condition}]}

    become(EVENTING, "brokers", "default", status="True")
    become(EVENTING, "triggers", "swap", status="True")
    become(SERVING, "services", "swap", status="False", reason="RevisionMissing")
    assert run("list", "--json").json[0]["state"] == "1 of 3 not ready: Service swap (RevisionMissing)"
    become(SERVING, "services", "swap", status="True")
    assert run("list").out.splitlines()[1] == "acme\tdedicated\ttenant-acme\tready"
    fake.put(item("v1", "ConfigMap", "wakeswap", "wakeswap-tenants", data={"bad.yaml": "nonsense: 1\n"}))
    assert "file unusable: nonsense: Unknown field." in run("list").out


def test_who_may_not_is_told_what(
    run: Run, tmp_path: Path, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "beta", PLAIN)
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path, READER)))
    done = run("apply", "beta")
    assert done.status == 1
    assert "Cannot apply ConfigMap wakeswap/wakeswap-tenants: not allowed." in done.err
    assert 'cannot patch resource "configmaps"' in done.err
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path, "stale")))
    assert "the cluster does not know these credentials" in run("list").err


def test_a_cluster_without_knative(run: Run, tmp_path: Path, api: KubernetesApi) -> None:
    write(tmp_path, "acme", DEDICATED)
    api.kinds = {name: kinds for name, kinds in KINDS.items() if "knative" not in name}
    done = run("apply", "acme")
    assert done.status == 1
    assert "the cluster has no Broker of eventing.knative.dev/v1. Is Knative" in done.err
    api.kinds = KINDS
    assert run("apply", "acme").status == 0, "and what was done is gone on with"


def test_what_admission_says_is_passed_on(run: Run, tmp_path: Path, api: KubernetesApi) -> None:
    write(tmp_path, "acme", DEDICATED)
    api.deny = lambda one: "must not set the field(s): spec.x" if one["kind"] == "Trigger" else ""
    assert "denied the request: must not set the field(s): spec.x" in run("apply", "acme").err


def test_no_cluster_at_all(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    done = run("list")
    assert (done.status, done.err.startswith("cluster_error: No cluster: ")) == (1, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    config = yaml.safe_load(Path(tmp_path / "kubeconfig-admin-token.yaml").read_text())
    config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{port}"
    (tmp_path / "closed").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "closed"))
    assert "the cluster does not answer" in run("list").err
    assert run("list", "--context", "no-such").status == 1


@pytest.mark.parametrize("text", ["", "{}", "clusters: [", "- 1", "current-context: x\nclusters: 3\n"])
def test_a_kubeconfig_that_is_none(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "broken").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "broken"))
    write(tmp_path, "acme", DEDICATED)
    for command in (("list",), ("apply", "acme"), ("delete", "acme")):
        done = run(*command)
        assert (done.status, done.err.startswith("cluster_error: No cluster: ")) == (1, True)


@pytest.mark.parametrize("namespace", ["", "..", "a/b", "X", "wakeswap/../kube-system", "x" * 64, "a b", "é", "a\n"])
def test_a_namespace_that_is_none_is_refused_before_anything_is_asked(
    run: Run, tmp_path: Path, api: KubernetesApi, namespace: str
) -> None:
    write(tmp_path, "acme", DEDICATED)
    write(tmp_path, "beta", PLAIN)
    before = list(api.requests)
    for command in (
        *((verb, name) for verb in ("plan", "diff", "apply", "delete") for name in ("acme", "beta")),
        ("list",),
    ):
        done = run(*command, f"--namespace={namespace}")
        assert done.status == 1, command
        assert "--namespace: A namespace is a DNS label" in done.err
    assert [request for request in api.requests[len(before) :] if "/namespaces/" in request[1]] == []


@pytest.mark.parametrize("verb", ["plan", "diff", "apply", "delete"])
@pytest.mark.parametrize(
    "name", ["../acme", "a b", "", "-rf", "acme.yaml", "é", "..", "ACME", "acme\n", "acme\0", "%2e%2e"]
)
def test_a_name_that_is_none_is_refused_before_anything_is_asked(
    run: Run, tmp_path: Path, api: KubernetesApi, verb: str, name: str
) -> None:
    write(tmp_path, "acme", DEDICATED)
    before = list(api.requests)
    done = run(verb, "--", name)
    assert (done.status, "A tenant name is a DNS label" in done.err) == (1, True)
    assert [request for request in api.requests[len(before) :] if "/namespaces/" in request[1]] == []


def test_what_is_done_twice_or_in_the_wrong_order(run: Run, tmp_path: Path, fake: Server) -> None:
    """Each command twice, and a tenant that comes back after it was deleted with its data."""
    write(tmp_path, "acme", DEDICATED)
    assert [run("apply", "acme").status for _ in range(2)] == [0, 0]
    assert run("delete", "acme", "--data", "beta").status == 1
    assert fake.get("v1", "Namespace", "", "tenant-acme")
    assert [run("delete", "acme").status for _ in range(2)] == [0, 0]
    assert run("delete", "acme", "--data", "acme", "--dry-run=server").status == 0
    assert fake.get("v1", "Namespace", "", "tenant-acme"), "a dry run takes nothing"
    assert run("delete", "acme", "--data", "acme").status == 0
    assert fake.get("v1", "Namespace", "", "tenant-acme") is None
    gone = run("delete", "acme", "--data", "acme")
    assert (gone.status, "has no tenant acme" in gone.err) == (1, True)
    assert run("apply", "acme").status == 0


@pytest.mark.parametrize(
    ("code", "body", "said"),
    [
        (422, {"details": {"causes": [{"field": "spec.x", "message": "too long"}]}}, "not valid. spec.x: too long"),
        (413, {"message": "etcdserver: request is too large"}, "not valid. etcdserver: request is too large"),
        (409, {"message": "being terminated"}, "being terminated"),
        (500, {"message": "etcd leader changed"}, "can be repeated. etcd leader changed"),
        (503, b"<html>busy</html>", "can be repeated. status 503"),
        (404, b"", "status 404"),
    ],
)
def test_answers_become_messages(code: int, body: Any, said: str) -> None:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    detail = errors.refused("apply X", code, text).detail
    assert detail.startswith("Cannot apply X: ")
    assert detail.endswith(said)


def test_many_objects_come_page_by_page(fake: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from infra.tenants import cluster

    monkeypatch.setattr(cluster, "_PAGE", 2)
    for index in range(5):
        fake.put(item("v1", "ConfigMap", "wakeswap", f"c{index}", data={}))
    names = [name_of(one) for one in fake.cluster.list("v1", "ConfigMap", "wakeswap")]
    assert names == [f"c{index}" for index in range(5)]


def test_as_it_is_started_only_commands_for_a_cluster_load_its_client(tmp_path: Path) -> None:
    (tmp_path / "beta.yaml").write_text(PLAIN)
    code = (
        "import sys; from infra.tenants.cli import main; "
        f"status = main(['plan', 'beta', '--folder', {str(tmp_path)!r}]); "
        "sys.exit(status or 9 * ('kubernetes' in sys.modules))"
    )
    nowhere = environment(tmp_path / "nowhere")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=nowhere, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "beta.yaml" in done.stdout) == (0, True), done.stderr
    command = [sys.executable, "-m", "infra.tenants", "list"]
    done = subprocess.run(command, cwd=ROOT, env=nowhere, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("cluster_error: No cluster")) == (1, True), done.stderr
