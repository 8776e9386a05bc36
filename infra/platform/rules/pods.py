"""What a pod of a Knative Service may be: names, variables, ports, mounts, rights (knative.md section 1.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from infra.platform.rules.registry import rule
from infra.platform.stack import Stack, listing, mapping, whole

READ_ONLY = frozenset({"hostPath", "secret", "configMap", "projected", "csi", "image"})
"""Kinds of volume that Knative takes only where they are mounted read-only."""
_CONFIG = frozenset({"configMap", "secret", "projected"})
_VARIABLES = frozenset({"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"})
_PORTS = frozenset({8008, 8012, 8013, 8022, 9090, 9091})
_PATHS = frozenset({"/", "/dev", "/dev/log", "/tmp", "/var", "/var/log"})  # noqa: S108 - named, not used
_LABEL = 63
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_NOT_IN_INIT = ("readinessProbe", "livenessProbe", "startupProbe", "lifecycle", "restartPolicy")


@rule("revision-name", "The webhook refuses a revision's name that does not begin with its Service's.")
def revision_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        name = mapping(service.template.get("metadata")).get("name")
        fits = re.fullmatch(re.escape(service.name) + r"-[a-z0-9]([-a-z0-9]*[a-z0-9])?", str(name))
        if name is not None and not (fits and len(str(name)) <= _LABEL):
            yield f"{service.where}: spec.template.metadata.name", f"must begin with {service.name}-, 63 letters in all"


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
            path, where = str(mount.get("mountPath")), f"{container.where}.volumeMounts[{mount.get('name')}].mountPath"
            if path.rstrip("/") in {path.rstrip("/") for path in _PATHS}:
                yield where, "is reserved"
            elif not path.startswith("/"):
                yield where, "must begin with /"


@rule("reserved-variable", "Knative sets these itself and refuses a Service that does.")
def reserved_variable(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for entry in container.env:
            if str(entry.get("name")) in _VARIABLES - ({"PORT"} if container.init else set()):
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
            number = entry.get("containerPort")
            possible = isinstance(number, int) and 0 < number < 65536 and number not in _PORTS
            if len(ports) > 1 or not fits or not possible:
                yield f"{container.where}.ports", f"cannot be {dict(entry)!r}"


@rule("reserved-name", "queue-proxy is the container that Knative adds.")
def reserved_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        if container.spec.get("name") in ("queue-proxy", "queue_proxy"):
            yield f"{container.where}.name", "is reserved"


@rule("name", "The webhook refuses a name that is no DNS label.")
def name_(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        names = [(f"{service.where}: metadata.name", service.name)]
        names += [(f"{service.where}: volume {volume}", volume) for volume in service.volumes]
        named = [container for container in service.containers if "name" in container.spec]
        names += [(f"{container.where}.name", str(container.spec["name"])) for container in named]
        for where, text in names:
            if not _NAME.fullmatch(text):
                yield where, f"{text!r} is no name: small letters, digits and hyphens, at most 63"


@rule("timeout-order", "A wait above the Service's timeout is taken and never comes: the request ends before it.")
def timeout_order(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        most = whole(service.pod.get("timeoutSeconds"), 300)
        for field in ("responseStartTimeoutSeconds", "idleTimeoutSeconds"):
            if not 0 <= whole(service.pod.get(field), 0) <= most:
                yield f"{service.where}: spec.template.spec.{field}", f"is not between 0 and timeoutSeconds {most}"


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
