"""Folder, Procfile, Service command and Trigger are four views of one topology: they must agree."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.local.eventing.filters import parse_filter
from tests.contract.components import rendered

ROOT = Path(__file__).parents[2]
STAGES = sorted(path.parent.name for path in (ROOT / "functions").glob("*/main.py"))
OVERLAYS = sorted(path.name for path in (ROOT / "knative/overlays").iterdir())
SILENT = {"notify", "meter"}
"""Their `handle` says nothing, so they may hear every rejection."""
EXTERNAL = {"dev.knative.connector.event.aws-sqs", "dev.knative.eventing.aws-sqs", "dev.knative.sources.ping"}


def render(overlay: str) -> tuple[dict[str, Any], ...]:
    return rendered(overlay)


def services(overlay: str = "local") -> dict[str, dict[str, Any]]:
    return {doc["metadata"]["name"]: doc for doc in render(overlay) if doc["apiVersion"] == "serving.knative.dev/v1"}


def triggers(overlay: str = "local") -> dict[str, dict[str, Any]]:
    return {doc["metadata"]["name"]: doc["spec"] for doc in render(overlay) if doc["kind"] == "Trigger"}


def annotations(service: dict[str, Any]) -> dict[str, str]:
    """Those of the template, where autoscaling reads them."""
    found: dict[str, str] = service["spec"]["template"].get("metadata", {}).get("annotations", {})
    return found


def pod(service: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = service["spec"]["template"]["spec"]
    return spec


def filter_types(filters: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(dialect, type) of every leaf filter on `type`."""
    found: list[tuple[str, str]] = []
    for entry in filters:
        for dialect, value in entry.items():
            if dialect in ("any", "all", "not"):
                found += filter_types(value if isinstance(value, list) else [value])
            elif "type" in value:
                found.append((dialect, value["type"]))
    return found


def hears(attributes: dict[str, str]) -> dict[str, str]:
    """Who gets an event with these attributes, and at which path."""
    matching = [
        spec["subscriber"]
        for spec in triggers().values()
        if parse_filter({"filters": spec["filters"]}, "spec").matches(attributes)
    ]
    return {subscriber["ref"]["name"]: subscriber.get("uri", "/") for subscriber in matching}


def test_folders_services_and_procfile_name_the_same_stages_and_commands() -> None:
    procfile = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())
    assert sorted(procfile) == STAGES
    assert sorted(name.replace("-", "_") for name in services()) == STAGES
    for stage, command in procfile.items():
        (container,) = pod(services()[stage.replace("_", "-")])["containers"]
        assert container["command"] == shlex.split(command)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_fits_on_one_screen_and_states_what_it_adds(stage: str) -> None:
    folder = ROOT / "functions" / stage
    assert (folder / "main.py").read_text().count("\n") < 60
    assert (folder / "requirements.txt").is_file()
    assert (folder / "__init__.py").is_file(), "without it the check of imports does not see the stage"
    examples = sorted((ROOT / "tests/events").glob(f"{stage}.*.json"))
    assert examples or stage in SILENT, f"tests/events/{stage}.completed.json: docs/events.md is made from examples"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_reference_of_a_trigger_exists(overlay: str) -> None:
    for name, spec in triggers(overlay).items():
        targets = [spec["subscriber"]["ref"]]
        if "deadLetterSink" in spec["delivery"]:
            targets.append(spec["delivery"]["deadLetterSink"]["ref"])
        assert all(target["name"] in services(overlay) for target in targets), name
        assert spec["broker"] == "default"


def test_every_stage_hears_something_and_every_type_has_a_sender() -> None:
    heard = {spec["subscriber"]["ref"]["name"] for spec in triggers().values() if "uri" not in spec["subscriber"]}
    sinks = {
        spec["delivery"]["deadLetterSink"]["ref"]["name"]
        for spec in triggers().values()
        if "deadLetterSink" in spec["delivery"]
    }
    assert heard | sinks == set(services())
    for spec in triggers().values():
        for dialect, type_ in filter_types(spec["filters"]):
            if dialect == "exact" and type_ not in EXTERNAL:
                match = re.fullmatch(r"dev\.wakeswap\.([a-z_]+)\.completed\.v1", type_)
                assert match, type_
                assert match[1] in STAGES


def test_ce_07_no_stage_hears_what_it_says() -> None:
    for name, spec in triggers().items():
        stage = spec["subscriber"]["ref"]["name"].replace("-", "_")
        said = {f"dev.wakeswap.{stage}.{outcome}.v1" for outcome in ("completed", "rejected", "failed")}
        assert stage in SILENT or not said & {type_ for _, type_ in filter_types(spec["filters"])}, name


def test_enhance_is_woken_and_reached_only_by_jobs_that_ask_for_it() -> None:
    asked = {"enhance": "true"}
    accepted = {"type": "dev.wakeswap.intake.completed.v1", "wake": "ahead"}
    plain = hears(accepted)
    assert plain.items() >= {"moderate": "/", "detect": "/wake", "swap": "/wake", "publish": "/wake"}.items()
    assert hears({**accepted, **asked}) == {**plain, "enhance": "/wake"}
    for stage in STAGES:  # of which one comes before enhance, whichever it is
        said = {"type": f"dev.wakeswap.{stage}.completed.v1"}
        assert "enhance" not in hears(said), stage
        assert hears({**said, **asked}) in (hears(said), {"enhance": "/"}), stage
    assert hears({"type": "dev.wakeswap.enhance.completed.v1", **asked})


def test_a_video_goes_by_split_and_its_segments_by_assemble() -> None:
    way = [
        ("intake", "video", {"moderate"}),
        ("moderate", "video", {"split"}),
        ("split", "segment", {"detect"}),
        ("detect", "segment", {"swap"}),
        ("swap", "segment", {"assemble"}),
        ("assemble", "segment", {"detect"}),
        ("assemble", "video", {"publish"}),
        ("intake", "segment", {"detect"}),
    ]
    for stage, media, expected in way:
        said = {"type": f"dev.wakeswap.{stage}.completed.v1", "source": f"/wakeswap/{stage}", "media": media}
        assert hears(said) == dict.fromkeys(expected, "/"), said
        image = {**said, "media": "image"}
        assert not hears(image).keys() & {"split", "assemble"} or stage in ("split", "assemble"), image


def test_only_a_video_wakes_split_and_assemble() -> None:
    for stage, wake in (("intake", "ahead"), ("moderate", "after-moderation")):
        said = {"type": f"dev.wakeswap.{stage}.completed.v1", "wake": wake}
        woken = {name for name, path in hears({**said, "media": "image"}).items() if path == "/wake"}
        of_video = {name for name, path in hears({**said, "media": "video"}).items() if path == "/wake"}
        first = {"split"} if stage == "intake" else {"detect"}  # whose own turn it is at the other
        assert of_video == woken | {"assemble"} | first
    assert hears({"type": "dev.wakeswap.intake.completed.v1", "media": "segment"}) == {"detect": "/"}


def test_a_tenant_chooses_when_its_jobs_wake_the_stages_to_come() -> None:
    accepted, moderated = ({"type": f"dev.wakeswap.{stage}.completed.v1"} for stage in ("intake", "moderate"))
    first, second, asked = hears(accepted), hears(moderated), {"enhance": "true"}
    assert {*first.values(), *second.values()} == {"/"}, "whoever does not ask for it wakes nothing"
    woken = {name for name, path in hears({**accepted, "wake": "ahead"}).items() if path == "/wake"}
    later = dict.fromkeys(woken - second.keys(), "/wake")
    assert hears({**moderated, "wake": "ahead"}) == second
    after = {"wake": "after-moderation"}
    assert hears({**accepted, **after, **asked}) == first
    assert hears({**moderated, **after}) == {**second, **later}
    assert hears({**moderated, **after, **asked}) == {**second, **later, "enhance": "/wake"}
    for said in ({"wake": "none"}, {}):
        assert hears({**accepted, **said, **asked}) == first
        assert hears({**moderated, **said, **asked}) == second
    refused = {"type": "dev.wakeswap.moderate.rejected.v1", **after, **asked}
    assert hears(refused) == {"notify": "/", "meter": "/", "intake": "/"}


def test_every_end_of_a_job_reaches_intake_and_meter_but_for_the_refusals_of_intake() -> None:
    ends = [("publish", "completed"), *((stage, "rejected") for stage in STAGES), ("dead_letter", "failed")]
    for stage, outcome in ends:
        said = {"type": f"dev.wakeswap.{stage}.{outcome}.v1", "source": f"/wakeswap/{stage}"}
        assert ("intake" in hears(said)) == ("meter" in hears(said)) == (stage != "intake"), said
    for stage in STAGES:
        said = {"type": f"dev.wakeswap.{stage}.completed.v1", "source": f"/wakeswap/{stage}"}
        assert ("intake" in hears(said)) == ("meter" in hears(said)) == (stage == "publish"), said


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_cold_02_concurrency_is_what_the_process_serves(overlay: str) -> None:
    for name, service in services(overlay).items():
        spec = pod(service)
        env = {item["name"]: item.get("value") for item in spec["containers"][0].get("env", [])}
        slots, said = spec.get("containerConcurrency"), annotations(service)
        assert env.get("WAKESWAP_CONCURRENCY") == str(slots), f"{name}: WAKESWAP_CONCURRENCY is containerConcurrency"
        assert int(said.get("autoscaling.knative.dev/max-scale", 0)) >= 1, f"{name}: no max-scale on the template"
        if slots == 1:  # Knative's 70 % of one request would start a second pod for the first
            assert said.get("autoscaling.knative.dev/target-utilization-percentage") == "100", name


def test_cold_05_no_worker_is_killed_for_working() -> None:
    read = "import runpy; read = runpy.run_path('shared/serving/gunicorn.conf.py')"
    code = f"{read}; print(read['timeout'], read['graceful_timeout'])"
    environ = {"PATH": "", "WAKESWAP_TIMEOUT_SECONDS": "300"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "300"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_service_signs_and_believes_events_with_the_keys_of_one_secret(overlay: str) -> None:
    reference = {"secretKeyRef": {"name": "wakeswap-events", "key": "WAKESWAP_EVENT_KEYS"}}
    for name, service in services(overlay).items():
        (container,) = pod(service)["containers"]
        assert {"name": "WAKESWAP_EVENT_KEYS", "valueFrom": reference} in container["env"], name


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_stages_with_models_fetch_them_in_an_init_step_into_a_writable_volume(overlay: str) -> None:
    for name, service in services(overlay).items():
        for init in pod(service).get("initContainers", []):
            stage = name.removesuffix("-batch").replace("-", "_")
            assert init["command"] == ["python", "model-warmup/main.py", stage]
            volumes = {volume["name"]: volume for volume in pod(service)["volumes"]}
            for mount in init["volumeMounts"]:
                assert not mount.get("readOnly")
                assert "emptyDir" in volumes[mount["name"]]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_cold_07_no_two_cron_sources_fire_in_the_same_minute(overlay: str) -> None:
    schedules = [doc["spec"]["schedule"] for doc in render(overlay) if doc["kind"] == "PingSource"]
    minutes = [schedule.split()[0] for schedule in schedules]
    assert len(set(minutes)) == len(minutes)
    assert "0" not in minutes
