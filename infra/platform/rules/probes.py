"""When a pod is ready, and when it is given up (knative.md section 1.4)."""

from __future__ import annotations

from collections.abc import Iterator

from infra.platform.durations import go_seconds
from infra.platform.rules.registry import rule
from infra.platform.stack import Container, Doc, Service, Stack, annotations_of, listing, mapping, whole

PROGRESS_DEADLINE = "serving.knative.dev/progress-deadline"
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")


@rule(
    "probe-missing",
    "Without one Knative asks whether the port is open, and events meet a process that loads.",
)
def missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        if not container.init and "httpGet" not in mapping(container.spec.get("readinessProbe")):
            yield f"{container.where}.readinessProbe", "must be an httpGet"


@rule("probe-aggressive", "Without a period queue-proxy asks every 50 ms; the webhook refuses these beside that.")
def aggressive(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        probe = mapping(container.spec.get("readinessProbe"))
        for field in ("failureThreshold", "timeoutSeconds"):
            if probe.get(field) and not probe.get("periodSeconds"):
                yield f"{container.where}.readinessProbe.{field}", "may not be set without periodSeconds"


@rule("probe-port", "Probes go to the port that is served; another needs the flag multi-container-probing.")
def other_port(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        ports = [mapping(entry) for entry in listing(container.spec.get("ports"))]
        served = {entry.get("containerPort") for entry in ports} or {8080}
        names = {entry.get("name") for entry in ports}
        for name, probe in _probes(container):
            action = mapping(probe.get("httpGet")) or mapping(probe.get("tcpSocket"))
            number = action.get("port")
            if isinstance(number, int) and number and number not in served:
                yield f"{container.where}.{name}", f"asks port {number}, which is not the one served"
            if isinstance(number, str) and number not in names:
                yield f"{container.where}.{name}", f"asks port {number!r}, and no port has this name"


@rule("probe-patience", "A startup probe over the progress deadline never ends a start: Knative gives up first.")
def patience(stack: Stack) -> Iterator[tuple[str, str]]:
    for service, container in stack.containers():
        probe = mapping(container.spec.get("startupProbe"))
        if not probe or container.init:
            continue
        seconds = whole(probe.get("failureThreshold"), 3) * whole(probe.get("periodSeconds"), 10)
        if not seconds < deadline(service):
            says = f"lasts {seconds} s, the progress deadline {deadline(service):g} s"
            yield f"{container.where}.startupProbe", says


def deadline(service: Service) -> float:
    """Seconds a new revision has; NaN for what is no duration."""
    return go_seconds(str(annotations_of(service.template).get(PROGRESS_DEADLINE, "600s")))


def _probes(container: Container) -> Iterator[tuple[str, Doc]]:
    for name in _PROBES:
        if name in container.spec and not container.init:
            yield name, mapping(container.spec[name])
