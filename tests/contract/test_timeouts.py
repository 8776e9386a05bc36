"""Timeouts fit into each other, in every overlay and with every component: from the inside out, each outlives the next.

A job's deadline, then the time to an answer's first byte, the Service's own timeout, the Trigger's. The last is the
longest, so that a Service answers for itself; a broker that gave up first would count a wait in a queue as a failure.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from shared.models import catalog
from tests.contract.components import of_kind, rendered
from tests.contract.test_topology import OVERLAYS

SETS = [
    (),
    ("fused-front",),
    ("cache-pod",),
    ("node-cache-daemonset",),
    ("node-cache-pvc",),
    ("fused-front", "node-cache-daemonset"),
    ("fused-front", "gpu"),
]
SETS += [("spot-batch",), ("spot-batch", "gpu")]
MOST = 600
"""Of a Service's timeoutSeconds: max-revision-timeout-seconds."""
RESPONSE_START = 300
"""Knative's default, but never more than timeoutSeconds."""
LINK_BYTES = 10_000_000
"""A second, from a bucket to a pod: a slow link."""
LOADING_SECONDS = 30
"""From a cached file to ready on two busy cores: over ten times what bench_wake shows for the default models."""
every = [pytest.param(overlay, components) for overlay in OVERLAYS for components in SETS]


def services(overlay: str, components: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    found = of_kind(rendered(overlay, *components), "Service", "serving.knative.dev")
    return {name: service["spec"]["template"] for name, service in found.items()}


def response_start(pod: dict[str, Any]) -> int:
    return min(pod.get("responseStartTimeoutSeconds", RESPONSE_START), pod["timeoutSeconds"])


def seconds(duration: str) -> int:
    match = re.fullmatch(r"(?:PT)?(?:([0-9]+)[mM])?(?:([0-9]+)[sS])?", duration)
    assert match, duration
    return 60 * int(match[1] or 0) + int(match[2] or 0)


def cold_seconds() -> float:
    """The longest start: the largest model of the catalogue fetched over a slow link, and loaded."""
    return max(spec.size for spec in catalog.default().models.values()) / LINK_BYTES + LOADING_SECONDS


@pytest.mark.parametrize(("overlay", "components"), every)
def test_cold_05_a_job_ends_before_the_services_timeout_and_that_before_the_triggers(
    overlay: str, components: tuple[str, ...]
) -> None:
    docs, templates = rendered(overlay, *components), services(overlay, components)
    config = of_kind(docs, "ConfigMap")["wakeswap"]
    deadline = int(config["data"]["WAKESWAP_TIMEOUT_SECONDS"])
    for name, template in templates.items():
        assert deadline < response_start(template["spec"]) <= template["spec"]["timeoutSeconds"] < MOST, name
        names = {entry["name"] for container in template["spec"]["containers"] for entry in container.get("env", [])}
        assert "WAKESWAP_TIMEOUT_SECONDS" not in names, "one deadline for all"
    for name, trigger in of_kind(docs, "Trigger").items():
        if not name.startswith("wake-"):
            subscriber = templates[trigger["spec"]["subscriber"]["ref"]["name"]]["spec"]
            timeout = seconds(trigger["spec"]["delivery"]["timeout"])
            assert deadline < subscriber["timeoutSeconds"] < timeout < MOST, name


@pytest.mark.parametrize(("overlay", "components"), every)
def test_cold_05_a_cold_start_fits_into_every_wait(overlay: str, components: tuple[str, ...]) -> None:
    cold = cold_seconds()
    assert cold > 60, "an inswapper over a slow link"
    for name, template in services(overlay, components).items():
        assert cold < response_start(template["spec"]), name
        annotations = template.get("metadata", {}).get("annotations", {})
        progress = annotations.get("serving.knative.dev/progress-deadline", "600s")
        assert 2 * cold < seconds(progress), name
        for probe in ("readinessProbe", "startupProbe"):
            (container,) = template["spec"]["containers"]
            failures = container.get(probe, {}).get("failureThreshold")
            patience = failures and failures * container[probe]["periodSeconds"]
            assert patience is None or 2 * cold < patience < seconds(progress), "no probe ends a start early"


@pytest.mark.parametrize(("overlay", "components"), every)
def test_cold_05_retries_outlast_a_cold_start_and_a_lease(overlay: str, components: tuple[str, ...]) -> None:
    for name, trigger in of_kind(rendered(overlay, *components), "Trigger").items():
        delivery = trigger["spec"]["delivery"]
        if name.startswith("wake-"):
            assert delivery["retry"] == 0, name
            continue
        assert delivery["backoffPolicy"] == "exponential"
        delay = float(delivery["backoffDelay"].removeprefix("PT").removesuffix("S"))
        waited = sum(delay * 2**attempt for attempt in range(1, delivery["retry"] + 1))
        assert waited > cold_seconds(), name
