"""Overlays in: kustomize, folders, files; kinds sorted, references checked, the rest refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.fields import ManifestError
from infra.local.manifests import Manifests, load
from infra.local.yamldocs import parse_documents, read_documents
from tests.local.manifests.build import service

BROKER = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": {"name": "default"}}
BROKER_REF = {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default"}}
SERVICE_REF = {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "tiny"}}


def trigger(**spec: object) -> dict[str, Any]:
    body = {"broker": "default", "subscriber": SERVICE_REF, **spec}
    return {"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "t"}, "spec": body}


def config(kind: str = "ConfigMap", annotations: Mapping[str, str] | None = None, **fields: object) -> dict[str, Any]:
    metadata = {"name": "c", "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def loaded(folder: Path, *documents: Mapping[str, object]) -> Manifests:
    file = folder / "all.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return load(file, lambda name, templates: {key: f"{name}:{text}" for key, text in templates.items()})


def refused(folder: Path, *documents: Mapping[str, object]) -> str:
    with pytest.raises(ManifestError) as caught:
        loaded(folder, *documents)
    return str(caught.value)


def test_kustomize_is_rendered(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "kustomization.yaml").write_text("resources: [service.yaml]\nnamespace: ns\n")
    (tmp_path / "base" / "service.yaml").write_text(yaml.safe_dump(service()))
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    patch = "- op: replace\n  path: /spec/template/spec/timeoutSeconds\n  value: 7\n"
    kustomization = {
        "resources": ["../base"],
        "patches": [{"patch": patch, "target": {"kind": "Service"}}],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    spec = load(overlay, lambda *_: {}).services["tiny"]
    assert (spec.namespace, spec.timeout) == ("ns", 7)


def test_a_broken_kustomization_tells_kubectls_reason(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [absent.yaml]\n")
    with pytest.raises(ManifestError, match=r"absent\.yaml"):
        read_documents(tmp_path)


def test_a_folder_of_files_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n---\n# nothing\n---\nb: 2\n")
    (tmp_path / "b.yml").write_text("when: 2024-01-01\n")
    (tmp_path / "c.txt").write_text("not: read\n")
    assert read_documents(tmp_path) == [{"a": 1}, {"b": 2}, {"when": "2024-01-01"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' is written twice"),
        ("a: {b: 1, b: 2}", "key 'b' is written twice"),
        ("a: [", "not valid YAML"),
        ("- 1\n", "a document is a list"),
        ("a: !!python/object:os.system x", "not valid YAML"),
    ],
)
def test_yaml_that_is_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        parse_documents(text, "file.yaml")


def test_everything_is_sorted_by_kind(tmp_path: Path) -> None:
    secret = config(
        "Secret", {"local.wakeswap.dev/generate": '{"KEY": "demo={random}"}'}, stringData={"A": "a"}, data={"B": "Yg=="}
    )
    binding = {
        "apiVersion": "sources.knative.dev/v1",
        "kind": "SinkBinding",
        "metadata": {"name": "b"},
        "spec": {"subject": SERVICE_REF["ref"], "sink": BROKER_REF},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    found = loaded(tmp_path, namespace, secret, config(data={"A": "1"}), service(), BROKER, trigger(), binding)
    assert set(found.services) == {"tiny"}
    assert [broker.key for broker in found.brokers] == ["default/default"]
    assert [trigger.key for trigger in found.triggers] == ["default/t"]
    assert [binding.subject for binding in found.bindings] == ["tiny"]
    assert found.data == {
        ("ConfigMap", "c"): {"A": "1"},
        ("Secret", "c"): {"A": "a", "B": "b", "KEY": "secret-c:demo={random}"},
    }
    assert found.generated == {"c": {"KEY": "secret-c:demo={random}"}}


@pytest.mark.parametrize("kind", ["Deployment", "Job", "StatefulSet"])
def test_other_kinds_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    message = refused(tmp_path, {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"}})
    assert message == f"{kind}/x: kind '{kind}' of 'apps/v1' is not implemented by the local platform"


def test_refusals_name_kind_object_and_field(tmp_path: Path) -> None:
    assert refused(tmp_path, service(spec={"hostNetwork": True})) == (
        "Service/tiny: spec.template.spec.hostNetwork: not implemented by the local platform"
    )
    assert refused(tmp_path, config(binaryData={})).startswith("ConfigMap/c: binaryData: not implemented")
    assert refused(tmp_path, config("Secret", type="kubernetes.io/tls")).startswith("Secret/c: type:")
    assert refused(tmp_path, config("Secret", data={"a": "?"})) == "Secret/c: data.a: is not the base64 of text"
    assert refused(tmp_path, config(data={"a": 1})).startswith("ConfigMap/c: data.a: must be text")
    wrong = config(annotations={"local.wakeswap.dev/generate": "[]"})
    assert "must be a JSON object of texts" in refused(tmp_path, wrong)


def test_references_to_nothing_are_refused(tmp_path: Path) -> None:
    assert "there is no Broker default/default" in refused(tmp_path, service(), trigger())
    assert "Trigger/t: spec.subscriber.ref: there is no Service tiny" in refused(tmp_path, BROKER, trigger())
    dead = trigger(delivery={"deadLetterSink": {"ref": {**SERVICE_REF["ref"], "name": "gone"}}})
    assert "spec.delivery.deadLetterSink.ref: there is no Service gone" in refused(tmp_path, BROKER, service(), dead)


def test_names_are_used_once(tmp_path: Path) -> None:
    assert "'tiny' is used twice" in refused(tmp_path, service(), service())
    assert "'c' is used twice" in refused(tmp_path, config(data={}), config(data={}))


def test_templates_are_json(tmp_path: Path) -> None:
    template = json.dumps({"STORE": "file:{state}/objects"})
    found = loaded(tmp_path, config(annotations={"local.wakeswap.dev/generate": template}))
    assert found.data[("ConfigMap", "c")] == {"STORE": "configmap-c:file:{state}/objects"}
