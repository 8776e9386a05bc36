"""How many pods: annotations that the autoscaler reads, and what one GPU a pod asks of them.

Knows the ranges that Knative's webhook enforces (knative.md sections 1.1 and 1.7).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from infra.platform.durations import go_seconds
from infra.platform.quantities import amount
from infra.platform.rules.registry import rule
from infra.platform.stack import AUTOSCALING, Service, Stack, annotations_of, mapping

_WHERE = "spec.template.metadata.annotations"


def _whole(low: int, high: int = 10**9) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(r"-?\d{1,9}", text) is not None and low <= int(text) <= high


def _number(low: float, high: float = 1e9) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(r"-?\d+(\.\d+)?", text) is not None and low <= float(text) <= high


def _seconds(low: float, high: float = 3600) -> Callable[[str], bool]:
    return lambda text: low <= go_seconds(text) <= high and go_seconds(text).is_integer()


CLASSES = ("kpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev")
"""Any other name passes the webhook unless it ends in knative.dev, and then nobody scales the revision."""
_METRICS = ("concurrency", "rps")
"""Of the first; the second takes whatever the cluster measures."""
_VALUES: dict[str, Callable[[str], bool]] = {
    "class": lambda text: text in CLASSES,
    "metric": bool,
    "target": _number(0.01),
    "target-utilization-percentage": _number(1, 100),
    "target-burst-capacity": lambda text: text == "-1" or _number(0)(text),
    "min-scale": _whole(0),
    "max-scale": _whole(0),
    "initial-scale": _whole(0),
    "activation-scale": _whole(2),
    "scale-down-delay": _seconds(0),
    "scale-to-zero-pod-retention-period": _seconds(0),
    "window": _seconds(6),
    "panic-window-percentage": _number(1, 100),
    "panic-threshold-percentage": _number(110, 1000),
    "metric-aggregation-algorithm": lambda text: text in ("linear", "weighted-exponential", "weightedExponential"),
}
"""What Knative takes for each key; the webhook takes every key that it does not know."""


@rule("autoscaling-key", "A misspelt key is taken without a word, and the default holds: no limit, no window.")
def key(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        for name in service.scale.keys() - _VALUES.keys():
            yield _at(service, name), "is no annotation of the autoscaler"


@rule("autoscaling-label", "The autoscaler reads annotations, never labels: the default holds.")
def label(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        for place, holder in (("metadata", service.doc), ("spec.template.metadata", service.template)):
            for name in mapping(mapping(holder.get("metadata")).get("labels")):
                if name.startswith(AUTOSCALING):
                    yield f"{service.where}: {place}.labels[{name}]", f"belongs under {_WHERE}"


@rule("autoscaling-on-service", "The autoscaler reads the template's annotations; the webhook refuses them elsewhere.")
def on_service(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        for name in annotations_of(service.doc):
            if name.startswith(AUTOSCALING):
                yield f"{service.where}: metadata.annotations[{name}]", f"belongs under {_WHERE}"


@rule("autoscaling-value", "The webhook refuses the Service, in the middle of `kubectl apply`.")
def value(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        for name, text in service.scale.items():
            if name in _VALUES and not _VALUES[name](str(text)):
                yield _at(service, name), f"cannot be {text!r}"
        if service.scale.get("class", CLASSES[0]) == CLASSES[0] and service.scale.get("metric", "rps") not in _METRICS:
            yield _at(service, "metric"), f"must be one of {', '.join(_METRICS)}"
        least, most = _count(service, "min-scale"), _count(service, "max-scale")
        if most and most < least:
            yield _at(service, "max-scale"), f"is below min-scale {least}"
        if most and most < _count(service, "activation-scale"):
            yield _at(service, "activation-scale"), f"is above max-scale {most}"


@rule("max-scale", "Without a limit a burst of N events asks for N pods: the autoscaler grows a thousandfold at once.")
def max_scale(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        if "max-scale" not in service.scale or service.scale["max-scale"] == "0":
            yield _at(service, "max-scale"), "is missing"


@rule("utilisation", "70 % of one request is less than one: the first event already starts a second pod, a second GPU.")
def utilisation(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        alone = service.pod.get("containerConcurrency") == 1
        if alone and service.scale.get("target-utilization-percentage") != "100":
            yield _at(service, "target-utilization-percentage"), "must be 100 where containerConcurrency is 1"


@rule("gpu-at-rest", "A pod at rest, or at every deploy, holds the GPU for which the next revision's pod waits.")
def gpu_at_rest(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        if service.has_gpu and service.scale.get("initial-scale") != "0":
            yield _at(service, "initial-scale"), 'must be "0": else every deploy needs a free GPU to become Ready'
        if service.has_gpu and _count(service, "min-scale"):
            yield _at(service, "min-scale"), "must be 0: else a roll-out needs two GPUs"


@rule("gpu-shared", "Two events in one process share the memory of one GPU, and the second runs out of it.")
def gpu_shared(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        if service.has_gpu and service.pod.get("containerConcurrency") != 1:
            yield f"{service.where}: spec.template.spec.containerConcurrency", "must be 1 for one GPU a pod"


@rule("gpu-count", "GPUs are whole. Admission takes a fraction, and the pod can then never be made.")
def gpu_count(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        count = container.limit("nvidia.com/gpu")
        if count is not None and not re.fullmatch(r"[1-9]\d?", str(count)):
            yield (
                f"{container.where}.resources.limits[nvidia.com/gpu]",
                f"must be whole GPUs, not {count!r}",
            )
        asked = mapping(mapping(container.spec.get("resources")).get("requests")).get("nvidia.com/gpu", count)
        if asked != count and amount(asked) != amount(count):
            yield f"{container.where}.resources.requests[nvidia.com/gpu]", "must be its limit, or not be there"


def _count(service: Service, name: str) -> int:
    text = str(service.scale.get(name, "0"))
    return int(text) if text.isdigit() else 0


def _at(service: Service, name: str) -> str:
    return f"{service.where}: {_WHERE}[{AUTOSCALING}{name}]"
