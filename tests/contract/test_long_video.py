"""The component `long-video`: a video's events become Jobs, everything else stays with the Services."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from infra.local.eventing.filters import parse_filter
from infra.platform.known import schemas
from shared.serving.once import NEVER
from tests.contract.components import BARE, of_kind, rendered
from tests.contract.test_topology import STAGES

LONG = ("split", "detect", "swap", "assemble")
SETS = [(), ("fused-front",), ("spot-batch",), ("fused-front", "gpu")]
Docs = tuple[dict[str, Any], ...]


def sinks() -> dict[str, dict[str, Any]]:
    return of_kind(rendered(BARE, "long-video"), "JobSink")


def hears(docs: Docs, attributes: dict[str, str]) -> set[tuple[str, str]]:
    """Kinds and names of who gets an event with these attributes."""
    found = set()
    for trigger in of_kind(docs, "Trigger").values():
        if parse_filter({"filters": trigger["spec"]["filters"]}, "spec").matches(attributes):
            ref = trigger["spec"]["subscriber"]["ref"]
            found.add((ref["kind"], ref["name"]))
    return found


def test_what_jobsink_makes_of_an_event_is_a_job_that_kubernetes_takes() -> None:
    known = schemas()
    assert known is not None
    for name, sink in sinks().items():
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, **sink["spec"]["job"]}
        assert [*known.faults(job)] == [], name
    assert set(sinks()) == set(LONG)


def test_a_job_is_what_the_stages_service_is_but_for_how_it_is_started() -> None:
    plain = of_kind(rendered(BARE), "Service", "serving.knative.dev")
    for name, sink in sinks().items():
        pod, service = sink["spec"]["job"]["spec"]["template"]["spec"], plain[name]["spec"]["template"]["spec"]
        (job,), (served,) = pod["containers"], service["containers"]
        assert job["command"] == ["python", "-m", "shared.serving.once", name]
        assert job["image"] == served["image"]
        assert job["envFrom"] == served["envFrom"]
        assert job["securityContext"] == served["securityContext"]
        assert sorted(job["volumeMounts"], key=str) == sorted(served["volumeMounts"], key=str)
        env = {entry["name"]: entry for entry in served["env"]}
        ours = {entry["name"]: entry for entry in job["env"]}
        for secret in ("WAKESWAP_EVENT_KEYS", "WAKESWAP_AUDIT_KEY", "TMPDIR"):
            assert ours[secret] == env[secret]
        assert [_sorted(init) for init in pod.get("initContainers", [])] == [
            _sorted(init) for init in service.get("initContainers", [])
        ]
        assert pod["serviceAccountName"] == name


def _sorted(container: dict[str, Any]) -> dict[str, Any]:
    return {**container, "volumeMounts": sorted(container["volumeMounts"], key=str)}


def test_a_process_answers_before_its_job_is_ended_and_says_what_ends_it() -> None:
    for sink in sinks().values():
        spec = sink["spec"]["job"]["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        limits = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert int(limits["WAKESWAP_TIMEOUT_SECONDS"]) < spec["activeDeadlineSeconds"]
        (rule,) = spec["podFailurePolicy"]["rules"]
        assert rule["onExitCodes"] == {"operator": "In", "values": [NEVER]}


def test_jobs_get_the_brokers_address_and_a_way_to_it() -> None:
    docs = rendered(BARE, "long-video")
    (binding,) = [one for one in of_kind(docs, "SinkBinding").values() if one["spec"]["subject"]["kind"] == "Job"]
    labels = binding["spec"]["subject"]["selector"]["matchLabels"]
    assert of_kind(docs, "NetworkPolicy")["long-video"]["spec"]["podSelector"]["matchLabels"] == labels
    for sink in sinks().values():
        job = sink["spec"]["job"]
        assert labels.items() <= job["metadata"]["labels"].items()
        assert labels.items() <= job["spec"]["template"]["metadata"]["labels"].items()


WAY = [
    ("moderate", "video", "split"),
    ("split", "segment", "detect"),
    ("detect", "segment", "swap"),
    ("swap", "segment", "assemble"),
    ("assemble", "segment", "detect"),
    ("intake", "segment", "detect"),
]


@pytest.mark.parametrize("components", SETS, ids="+".join)
def test_a_videos_events_go_to_jobs_whoever_heard_them_before(components: tuple[str, ...]) -> None:
    docs = rendered(BARE, *components, "long-video")
    for (stage, media, job), priority in product(WAY, ("interactive", "batch")):
        said = {"type": f"dev.wakeswap.{stage}.completed.v1", "source": f"/wakeswap/{stage}"}
        assert hears(docs, said | {"media": media, "priority": priority}) == {("JobSink", job)}, (
            stage,
            media,
            priority,
        )


@pytest.mark.parametrize("components", SETS, ids="+".join)
def test_everything_else_goes_where_it_went(components: tuple[str, ...]) -> None:
    before, after = rendered(BARE, *components), rendered(BARE, *components, "long-video")
    outcomes, media = ("completed", "rejected", "failed"), ("image", "video", "segment")
    moved = {(stage, media) for stage, media, _ in WAY}
    for stage, outcome, medium, priority in product(STAGES, outcomes, media, ("interactive", "batch")):
        if outcome == "completed" and (medium == "segment" or stage == "split" or (stage, medium) in moved):
            continue
        said = {"type": f"dev.wakeswap.{stage}.{outcome}.v1", "source": f"/wakeswap/{stage}", "tenantid": "acme"}
        event = said | {"media": medium, "priority": priority}
        found, old = hears(after, event), hears(before, event)
        assert found == old, event
