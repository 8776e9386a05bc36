"""Service manifests: what is read, and that everything else is refused by its full path."""

from __future__ import annotations

from typing import Any

import pytest

from infra.local.fields import ManifestError
from infra.local.serving.model import EnvSource, EnvVar, KeyRef, Mount, Probe, Volume
from infra.local.serving.spec import parse_service
from tests.local.manifests.build import service

C = "spec.template.spec.containers[0]"
A = "spec.template.metadata.annotations"
S = "spec.template.spec"


def test_defaults_are_knatives() -> None:
    spec = parse_service(service())
    assert (spec.namespace, spec.name, spec.revision) == ("default", "tiny", "tiny-00001")
    assert (spec.timeout, spec.response_start, spec.progress_deadline) == (20, 20, 600)
    assert (spec.scale.window, spec.scale.min_pods, spec.scale.max_pods, spec.scale.retention) == (60, 0, 0, 0)
    assert spec.container.readiness == Probe(scheme="http", path="/health/readiness")
    assert parse_service(service(spec={"timeoutSeconds": 600})).response_start == 300
    assert parse_service(service(container={"readinessProbe": None})).container.readiness == Probe(scheme="tcp")


def test_everything_that_is_played_is_read() -> None:
    document = service(
        annotations={
            "class": "kpa.autoscaling.knative.dev",
            "metric": "concurrency",
            "min-scale": "1",
            "max-scale": "3",
            "initial-scale": "2",
            "window": "1m30s",
            "scale-to-zero-pod-retention-period": "5m",
            "target": "2.5",
            "target-utilization-percentage": "80",
            "serving.knative.dev/progress-deadline": "2m",
        },
        spec={
            "responseStartTimeoutSeconds": 10,
            "serviceAccountName": "anyone",
            "automountServiceAccountToken": False,
            "securityContext": {"fsGroup": 1000},
            "initContainers": [{"image": "i", "command": ["a"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [
                {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
                {"name": "c", "configMap": {"name": "cm", "items": [{"key": "k", "path": "p/q"}]}},
                {"name": "s", "secret": {"secretName": "se", "optional": True}},
            ],
        },
        container={
            "name": "main",
            "args": ["--flag"],
            "workingDir": "/work",
            "imagePullPolicy": "Always",
            "ports": [{"name": "http1", "containerPort": 8081}],
            "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "se", "key": "b", "optional": True}}},
            ],
            "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}}],
            "resources": {"requests": {"cpu": 1, "memory": "256Mi"}, "limits": {"cpu": "1500m"}},
            "securityContext": {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
            "livenessProbe": {"tcpSocket": {"port": 8081}, "periodSeconds": 5, "failureThreshold": 2},
            "startupProbe": {"httpGet": {"path": "/s", "httpHeaders": [{"name": "X", "value": "y"}]}},
            "volumeMounts": [
                {"name": "c", "mountPath": "/c", "readOnly": True},
                {"name": "s", "mountPath": "/s", "subPath": "a"},
            ],
        },
    )
    document["metadata"]["annotations"] = {"local.wakeswap.dev/port": "8080", "example.com/anything": "goes"}
    document["spec"]["traffic"] = [{"latestRevision": True, "percent": 100}]
    document["spec"]["template"]["metadata"]["name"] = "tiny-v2"
    spec = parse_service(document)
    assert (spec.revision, spec.public_port, spec.progress_deadline, spec.response_start) == ("tiny-v2", 8080, 120, 10)
    assert (spec.scale.min_pods, spec.scale.max_pods, spec.scale.initial_pods) == (1, 3, 2)
    assert (spec.scale.window, spec.scale.retention) == (90, 300)
    assert spec.pod_capacity == 2.0
    main = spec.container
    assert main.env == (EnvVar("A", "1"), EnvVar("B", ref=KeyRef("Secret", "se", "b", optional=True)))
    assert main.env_from == (EnvSource("ConfigMap", "cm", "P_"),)
    assert main.mounts == (Mount("c", "/c"), Mount("s", "/s", "a"))
    assert main.liveness == Probe(scheme="tcp", period=5, failures=2)
    assert main.startup == Probe(scheme="http", path="/s", headers=(("X", "y"),), period=10)
    assert spec.volumes[1] == Volume("c", "ConfigMap", "cm", (("k", "p/q"),))
    assert spec.init[0].name == "init-container"


@pytest.mark.parametrize(
    ("concurrency", "annotations", "capacity"),
    [
        (0, {}, 100),
        (4, {}, 4),
        (4, {"target": "2"}, 2),
        (4, {"target": "9"}, 4),
        (10, {"target-utilization-percentage": "50"}, 5),
    ],
)
def test_pod_capacity(concurrency: int, annotations: dict[str, str], capacity: float) -> None:
    assert parse_service(service(annotations=annotations, spec={"containerConcurrency": concurrency})).pod_capacity == (
        capacity
    )


REFUSED_ANNOTATIONS = {
    "minscale": "1",
    "min-scale": "-1",
    "max-scale": "many",
    "initial-scale": "1.5",
    "window": "5s",
    "scale-to-zero-pod-retention-period": "61m",
    "target": "0",
    "target-utilization-percentage": "101",
    "metric": "rps",
    "class": "hpa.autoscaling.knative.dev",
    "activation-scale": "2",
    "target-burst-capacity": "-1",
    "serving.knative.dev/progress-deadline": "10",
    "serving.knative.dev/progres-deadline": "10s",
    "local.wakeswap.dev/prot": "1",
}


@pytest.mark.parametrize(("key", "value"), REFUSED_ANNOTATIONS.items())
def test_annotations_that_are_refused(key: str, value: str) -> None:
    full = key if "/" in key else f"autoscaling.knative.dev/{key}"
    with pytest.raises(ManifestError) as caught:
        parse_service(service(annotations={key: value}))
    assert caught.value.field == f"{A}[{full}]"


@pytest.mark.parametrize("text", ["1.5s", "90", "1d", "s", "", "1m 30s"])
def test_durations_that_are_refused(text: str) -> None:
    with pytest.raises(ManifestError):
        parse_service(service(annotations={"window": text}))


def test_max_below_min_is_refused() -> None:
    with pytest.raises(ManifestError, match="at least min-scale 3"):
        parse_service(service(annotations={"min-scale": "3", "max-scale": "2"}))


VOLUME = {"volumes": [{"name": "v", "emptyDir": {}}]}
REFUSED_SPEC: list[tuple[dict[str, Any], str]] = [
    ({"containerConcurency": 1}, f"{S}.containerConcurency"),
    ({"containerConcurrency": 1001}, f"{S}.containerConcurrency"),
    ({"containerConcurrency": "1"}, f"{S}.containerConcurrency"),
    ({"timeoutSeconds": 601}, f"{S}.timeoutSeconds"),
    ({"idleTimeoutSeconds": 5}, f"{S}.idleTimeoutSeconds"),
    ({"nodeSelector": {"a": "b"}}, f"{S}.nodeSelector"),
    ({"restartPolicy": "Always"}, f"{S}.restartPolicy"),
    ({"automountServiceAccountToken": True}, f"{S}.automountServiceAccountToken"),
    ({"securityContext": {"sysctls": []}}, f"{S}.securityContext.sysctls"),
    ({"containers": [{"image": "i", "command": ["a"]}] * 2}, f"{S}.containers"),
    ({"initContainers": [{"image": "i"}]}, f"{S}.initContainers[0].command"),
    ({"initContainers": [{"image": "i", "command": ["a"], "ports": []}]}, f"{S}.initContainers[0].ports"),
    (VOLUME, f"{S}.volumes[0].name"),
    ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, f"{S}.volumes[0].hostPath"),
    ({"volumes": [{"name": "v", "emptyDir": {"size": 1}}]}, f"{S}.volumes[0].emptyDir.size"),
    ({"volumes": [{"name": "v"}]}, f"{S}.volumes[0]"),
    ({"volumes": [{"name": "v", "emptyDir": {}}] * 2}, f"{S}.volumes[1].name"),
    (
        {"volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../x"}]}}]},
        f"{S}.volumes[0].secret.items[0].path",
    ),
]


@pytest.mark.parametrize(("changes", "field"), REFUSED_SPEC)
def test_revision_fields_that_are_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_service(service(spec=changes))
    assert caught.value.field == field


HTTP = {"path": "/"}
REFUSED_CONTAINER: list[tuple[dict[str, Any], str]] = [
    ({"comand": ["x"]}, f"{C}.comand"),
    ({"command": None}, f"{C}.command"),
    ({"command": ["x", 1]}, f"{C}.command[1]"),
    ({"image": ""}, f"{C}.image"),
    ({"lifecycle": {}}, f"{C}.lifecycle"),
    ({"stdin": True}, f"{C}.stdin"),
    ({"ports": [{"containerPort": 9090}]}, f"{C}.ports[0].containerPort"),
    ({"ports": [{"containerPort": 80}, {"containerPort": 81}]}, f"{C}.ports"),
    ({"ports": [{"name": "h2c"}]}, f"{C}.ports[0].name"),
    ({"ports": [{"protocol": "UDP"}]}, f"{C}.ports[0].protocol"),
    ({"ports": [{"hostPort": 1}]}, f"{C}.ports[0].hostPort"),
    ({"env": [{"name": "PORT", "value": "1"}]}, f"{C}.env[0].name"),
    ({"env": [{"name": "K_SERVICE", "value": "1"}]}, f"{C}.env[0].name"),
    ({"env": [{"name": "A=B"}]}, f"{C}.env[0].name"),
    ({"env": [{"name": "A", "value": 1}]}, f"{C}.env[0].value"),
    ({"env": [{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {}}}]}, f"{C}.env[0]"),
    (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        f"{C}.env[0].valueFrom.fieldRef",
    ),
    ({"env": [{"name": "A", "valueFrom": {}}]}, f"{C}.env[0].valueFrom"),
    (
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "n"}}}]},
        f"{C}.env[0].valueFrom.configMapKeyRef.key",
    ),
    ({"envFrom": [{"configMap": {"name": "x"}}]}, f"{C}.envFrom[0].configMap"),
    ({"envFrom": [{}]}, f"{C}.envFrom[0]"),
    ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, f"{C}.resources.limits[nvidia.com/gpu]"),
    ({"resources": {"limits": {"memory": "lots"}}}, f"{C}.resources.limits.memory"),
    ({"securityContext": {"privileged": True}}, f"{C}.securityContext.privileged"),
    ({"volumeMounts": [{"name": "x", "mountPath": "/x"}]}, f"{C}.volumeMounts[0].name"),
    ({"readinessProbe": {"exec": {"command": ["x"]}}}, f"{C}.readinessProbe.exec"),
    ({"readinessProbe": {"httpGet": HTTP, "failureThreshold": 3}}, f"{C}.readinessProbe.failureThreshold"),
    ({"readinessProbe": {"httpGet": HTTP, "timeoutSeconds": 1}}, f"{C}.readinessProbe.timeoutSeconds"),
    ({"readinessProbe": {"httpGet": {"path": "x"}}}, f"{C}.readinessProbe.httpGet.path"),
    ({"readinessProbe": {"httpGet": {"host": "x"}}}, f"{C}.readinessProbe.httpGet.host"),
    ({"readinessProbe": {"httpGet": {"scheme": "HTTPS"}}}, f"{C}.readinessProbe.httpGet.scheme"),
    ({"livenessProbe": {"tcpSocket": {"port": 9}}}, f"{C}.livenessProbe.tcpSocket.port"),
    ({"livenessProbe": {"tcpSocket": {}, "httpGet": {}}}, f"{C}.livenessProbe"),
    ({"startupProbe": {"grpc": {}}}, f"{C}.startupProbe.grpc"),
]


@pytest.mark.parametrize(("changes", "field"), REFUSED_CONTAINER)
def test_container_fields_that_are_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_service(service(container=changes))
    assert caught.value.field == field


@pytest.mark.parametrize("path", ["/", "/tmp", "relative"])
def test_mount_paths_that_are_refused(path: str) -> None:
    document = service(spec=VOLUME, container={"volumeMounts": [{"name": "v", "mountPath": path}]})
    with pytest.raises(ManifestError) as caught:
        parse_service(document)
    assert caught.value.field == f"{C}.volumeMounts[0].mountPath"


def test_service_fields_that_are_refused() -> None:
    def refused(change: str, value: object, *path: str) -> str:
        document = service()
        place = document
        for part in path:
            place = place.setdefault(part, {})
        place[change] = value
        with pytest.raises(ManifestError) as caught:
            parse_service(document)
        return caught.value.field

    assert refused("status", {}) == "status"
    assert refused("traffik", [], "spec") == "spec.traffik"
    assert refused("traffic", [{"percent": 50}], "spec") == "spec.traffic[0]"
    assert refused("finalizers", [], "metadata") == "metadata.finalizers"
    assert refused("name", "Tiny", "metadata") == "metadata.name"
    assert refused("name", "other-1", "spec", "template", "metadata") == "spec.template.metadata.name"
    assert refused("local.wakeswap.dev/port", "99999", "metadata", "annotations") == (
        "metadata.annotations[local.wakeswap.dev/port]"
    )
    assert refused("autoscaling.knative.dev/max-scale", "1", "metadata", "annotations") == (
        "metadata.annotations[autoscaling.knative.dev/max-scale]"
    )
