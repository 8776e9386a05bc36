"""What a pod of a Knative Service may be: names, variables, ports, mounts, rights (knative.md section 1.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from infra.platform.rules.registry import rule
from infra.platform.stack import Stack, listing, mapping

READ_ONLY = frozenset({"hostPath", "secret", "configMap", "projected", "csi", "image"})
"""Kinds of volume that Knative takes only where they are mounted read-only."""
_CONFIG = frozenset({"configMap", "secret", "projected"})
_VARIABLES = frozenset({"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"})
_PORTS = frozenset({8008, 8012, 8013, 8022, 9090, 9091})
_PATHS = frozenset({"/", "/dev", "/dev/log", "/tmp", "/var", "/var/log"})  # noqa: S108 - named, not used
_NOT_IN_INIT = ("readinessProbe", "livenessProbe", "startupProbe", "lifecycle", "restartPolicy")


@rule("revision-name", "The webhook refuses a revision's name that does not begin with its Service's.")
def revision_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        name = mapping(service.template.get("metadata")).get("name")
        if name is not None and not re.fullmatch(
            re.escape(service.name) + r"-[a-z0-9]([-a-z0-9]*[a-z0-9])?", str(name)
        ):
            yield f"{service.where}: spec.template.metadata.name", f"must begin with {service.name}-"


@rule("init-field", "Init steps have no probes and no hooks under Knative, and no sidecar can be made of them.")
def init_field(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for field in _NOT_IN_INIT if container.init else ():
            if field in container.spec:
                yield f"{container.where}.{field}", "may not be in an init container"


@rule("mount-read-only", "Knative fills in readOnly for containers, not for init steps, and then refuses the Service.")
def mount_read_only(stack: Stack) -> Iterator[tuple[str, str]]:
    for service, container in stack.containers():
        for mount in container.mounts:
            kind = service.volumes.get(str(mount.get("name")), "")
            if kind in READ_ONLY and mount.get("readOnly") is not True:
                yield f"{container.where}.volumeMounts[{mount.get('name')}]", f"a {kind} needs readOnly: true"


@rule("volume-unmounted", "The webhook refuses a volume that nothing mounts, and a mount of no volume.")
def volume_unmounted(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        mounts = {str(mount.get("name")) for container in service.containers for mount in container.mounts}
        for name in sorted(mounts ^ service.volumes.keys()):
            says = (
                "is mounted by no container" if name in service.volumes else "is mounted, and there is no such volume"
            )
            yield f"{service.where}: volume {name}", says


@rule("mount-frozen", "A file mounted by subPath keeps what it said when the pod started.")
def mount_frozen(stack: Stack) -> Iterator[tuple[str, str]]:
    for service, container in stack.containers():
        for mount in container.mounts:
            if mount.get("subPath") and service.volumes.get(str(mount.get("name"))) in _CONFIG:
                yield f"{container.where}.volumeMounts[{mount.get('name')}].subPath", "does not follow its object"


@rule("reserved-path", "The webhook refuses mounts on the paths of Knative's runtime contract.")
def reserved_path(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for mount in container.mounts:
            if str(mount.get("mountPath")).rstrip("/") in {path.rstrip("/") for path in _PATHS}:
                yield f"{container.where}.volumeMounts[{mount.get('name')}].mountPath", "is reserved"


@rule("reserved-variable", "Knative sets these itself and refuses a Service that does.")
def reserved_variable(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for entry in container.env:
            if entry.get("name") in _VARIABLES - ({"PORT"} if container.init else set()):
                yield f"{container.where}.env[{entry.get('name')}]", "is reserved"


@rule("variable-twice", "The last of two variables of one name wins, and the first reader believes the other.")
def variable_twice(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for name, times in Counter(str(entry.get("name")) for entry in container.env).items():
            if times > 1:
                yield f"{container.where}.env[{name}]", f"is there {times} times"


@rule("port", "One port for all containers, TCP, named http1 or h2c, and none of queue-proxy's own.")
def port(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        ports = [(each, mapping(entry)) for each in service.containers for entry in listing(each.spec.get("ports"))]
        for container, entry in ports:
            fits = entry.get("name", "") in ("", "http1", "h2c") and entry.get("protocol", "TCP") == "TCP"
            if len(ports) > 1 or not fits or entry.get("containerPort") in _PORTS:
                yield f"{container.where}.ports", f"cannot be {dict(entry)!r}"


@rule("reserved-name", "queue-proxy is the container that Knative adds.")
def reserved_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        if container.spec.get("name") in ("queue-proxy", "queue_proxy"):
            yield f"{container.where}.name", "is reserved"


@rule("timeout-order", "A wait above the Service's timeout is taken and never comes: the request ends before it.")
def timeout_order(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        whole = service.pod.get("timeoutSeconds") or 300
        for field in ("responseStartTimeoutSeconds", "idleTimeoutSeconds"):
            if (service.pod.get(field) or 0) > whole:
                yield f"{service.where}: spec.template.spec.{field}", f"is above timeoutSeconds {whole}"


@rule("resources", "Without a memory limit one picture may take the node's, and other tenants' pods with it.")
def resources(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        requests = mapping(mapping(container.spec.get("resources")).get("requests"))
        if container.limit("memory") is None or not {"cpu", "memory"} <= requests.keys():
            yield f"{container.where}.resources", "must say requests of cpu and memory, and a limit of memory"


@rule("privileges", "Who breaks out of a decoder has every right that the container has.")
def privileges(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        context = mapping(container.spec.get("securityContext"))
        wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True}
        wrong = [field for field, value in wanted.items() if context.get(field) is not value]
        if listing(mapping(context.get("capabilities")).get("drop")) != ["ALL"]:
            wrong.append("capabilities.drop")
        if mapping(context.get("seccompProfile")).get("type") != "RuntimeDefault":
            wrong.append("seccompProfile")
        if wrong:
            yield f"{container.where}.securityContext", f"must restrict {', '.join(wrong)}"


@rule("account-token", "A stage that never calls the cluster has no use for a token, and who takes the stage over has.")
def account_token(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        if service.pod.get("automountServiceAccountToken") is not False:
            yield f"{service.where}: spec.template.spec.automountServiceAccountToken", "must be false"
