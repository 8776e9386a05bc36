"""Services that sleep, wake for a request and sleep again: real gunicorn processes behind a real socket."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import aiohttp
import psutil
import pytest

from infra.local.serving.environment import Configs
from infra.local.serving.fleet import FleetLimits
from tests.local.manifests.build import activator, asleep, get, service

pytestmark = pytest.mark.slow

HTTP_SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


def run(work: object) -> None:
    asyncio.run(work)  # type: ignore[arg-type]


def test_asleep_wake_forward_idle_asleep(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service()) as (served, client):
            assert served.status()["state"] == "asleep"
            status, text = await get(client, "/some%2Fpath?a=b%20c")
            assert (status, json.loads(text)["path"]) == (200, "/some%2Fpath?a=b%20c")
            assert served.status()["state"] == "awake"
            await asleep(served)
            assert served.status()["state"] == "asleep"
            (wake,) = served.fleet.history
            assert wake.ready is not None
            assert wake.stopped is not None
            assert wake.created <= wake.ready <= wake.stopped
            assert (wake.requests, wake.end) == (1, "idle")
            assert 0.5 <= wake.stopped - wake.ready < 5
        assert not list((tmp_path / "pods").iterdir())
        assert not list((tmp_path / "volumes").iterdir())

    run(story())


def test_twenty_wakes_in_a_row_lose_no_request(tmp_path: Path) -> None:
    """Clients that never pause across every fall asleep: each answer must be a 200."""

    async def story() -> None:
        limits = FleetLimits(idle=0.01)
        async with activator(tmp_path, service(), limits=limits) as (served, client):
            answers: Counter[int] = Counter()

            async def caller(number: int) -> None:
                while len(served.fleet.history) <= 20:
                    answers[(await get(client, f"/{number}"))[0]] += 1
                    await asyncio.sleep(0.02 * number)

            await asyncio.gather(*(caller(number) for number in range(1, 5)))
            assert set(answers) == {200}
            assert sum(answers.values()) >= 20
            assert len(served.fleet.history) > 20

    run(story())


def test_container_concurrency_holds_requests_back(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(spec={"containerConcurrency": 2}, annotations={"max-scale": "1"})
        async with activator(tmp_path, document) as (served, client):
            inside = await asyncio.gather(*(get(client, "/sleep?0.1") for _ in range(10)))
            assert max(int(text) for _, text in inside) == 2
            assert {status for status, _ in inside} == {200}
            assert len(served.fleet.history) == 1

    run(story())


def test_more_requests_than_one_pod_holds_start_more_up_to_max_scale(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(spec={"containerConcurrency": 1}, annotations={"max-scale": "3"})
        async with activator(tmp_path, document) as (served, client):
            answers = await asyncio.gather(*(get(client, "/sleep?0.7") for _ in range(9)))
            assert set(answers) == {(200, "1")}
            assert len(served.fleet.history) == 3
            await asleep(served)

    run(story())


def test_the_local_cap_is_below_max_scale(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(spec={"containerConcurrency": 1}, annotations={"max-scale": "3"})
        limits = FleetLimits(idle=0.2, max_pods=1)
        async with activator(tmp_path, document, limits=limits) as (served, client):
            answers = await asyncio.gather(*(get(client, "/sleep?0.05") for _ in range(4)))
            assert {status for status, _ in answers} == {200}
            assert len(served.fleet.history) == 1

    run(story())


def test_min_scale_starts_at_once_and_never_sleeps(tmp_path: Path) -> None:
    async def story() -> None:
        limits = FleetLimits(idle=0.1)
        async with activator(tmp_path, service(annotations={"min-scale": "1"}), limits=limits) as (served, client):
            async with asyncio.timeout(10):
                while served.status()["state"] != "awake":
                    await asyncio.sleep(0.02)
            await get(client, "/")
            await asyncio.sleep(0.5)
            assert served.status()["state"] == "awake"

    run(story())


def test_window_and_retention_decide_without_a_local_setting(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(annotations={"window": "6s", "scale-to-zero-pod-retention-period": "1s"})
        async with activator(tmp_path, document, limits=FleetLimits()) as (served, client):
            await get(client, "/")
            await asleep(served)
            (wake,) = served.fleet.history
            assert wake.ready is not None
            assert wake.stopped is not None
            assert 7.0 <= wake.stopped - wake.ready < 9.0

    run(story())


def test_slow_readiness_holds_the_request_until_ready(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(container={"env": [{"name": "READY_AFTER", "value": "1"}]})
        async with activator(tmp_path, document) as (_, client):
            start = time.monotonic()
            assert (await get(client, "/"))[0] == 200
            assert time.monotonic() - start > 1

    run(story())


def test_waiting_longer_than_response_start_is_504(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(
            spec={"responseStartTimeoutSeconds": 1}, container={"env": [{"name": "READY_AFTER", "value": "30"}]}
        )
        async with activator(tmp_path, document) as (_, client):
            assert await get(client, "/") == (504, "activator request timeout\n")

    run(story())


def test_progress_deadline_ends_a_wake(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(
            annotations={"serving.knative.dev/progress-deadline": "1s"},
            container={"env": [{"name": "READY_AFTER", "value": "30"}]},
        )
        async with activator(tmp_path, document) as (served, client):
            assert await get(client, "/") == (503, "tiny does not wake: not ready within 1 s\n")
            assert len(served.fleet.history) == 3

    run(story())


def test_timeout_seconds_is_504_and_frees_the_slot(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(spec={"timeoutSeconds": 1, "containerConcurrency": 1}, annotations={"max-scale": "1"})
        async with activator(tmp_path, document) as (_, client):
            assert await get(client, "/sleep?3") == (504, "request timeout\n")
            assert (await get(client, "/"))[0] == 200

    run(story())


def test_a_full_queue_is_503(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(spec={"containerConcurrency": 1}, annotations={"max-scale": "1"})
        async with activator(tmp_path, document, limits=FleetLimits(idle=0.5, queue=2)) as (_, client):
            answers = await asyncio.gather(*(get(client, "/sleep?0.1") for _ in range(4)))
            assert Counter(answers) == {(200, "1"): 2, (503, "pending request queue full\n"): 2}

    run(story())


def test_a_crash_in_mid_request_is_502_and_the_next_request_wakes_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service()) as (served, client):
            assert await get(client, "/crash") == (502, "tiny ended without an answer\n")
            assert (await get(client, "/"))[0] == 200
            assert [wake.end for wake in served.fleet.history] == ["ended with signal 9", ""]

    run(story())


def test_a_pod_killed_while_idle_is_noticed_and_costs_no_request(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service(), limits=FleetLimits(idle=30)) as (served, client):
            for _ in range(5):
                async with client.get("/") as answer:
                    worker = psutil.Process(int(answer.headers["X-Pid"]))
                    assert answer.status == 200
                os.killpg(os.getpgid(worker.pid), signal.SIGKILL)
                await asleep(served)
            assert (await get(client, "/"))[0] == 200
            assert len(served.fleet.history) == 6

    run(story())


def test_a_command_that_ends_before_ready_is_noticed_at_once_and_told(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(container={"command": ["python", "-c", "import sys; print('no luck'); sys.exit(7)"]})
        async with activator(tmp_path, document) as (served, client):
            start = time.monotonic()
            assert await get(client, "/") == (
                503,
                "tiny does not wake: container user-container ended with exit code 7\n",
            )
            assert time.monotonic() - start < 5
            assert len(served.fleet.history) == 3
        assert (tmp_path / "logs" / "tiny.log").read_text() == "no luck\n" * 3

    run(story())


def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service(container={"command": ["no-such-program"]})) as (_, client):
            status, text = await get(client, "/")
            assert (status, text) == (503, "tiny does not wake: no-such-program: No such file or directory\n")

    run(story())


def test_init_containers_run_in_order_before_the_container_and_share_its_volume(tmp_path: Path) -> None:
    def step(text: str) -> dict[str, object]:
        return {
            "image": "tiny",
            "command": ["sh", "-c", f"echo {text} >> $FILE"],
            "env": [{"name": "FILE", "value": "/work/notes"}],
            "volumeMounts": [{"name": "work", "mountPath": "/work"}],
        }

    async def story() -> None:
        document = service(
            spec={"initContainers": [step("one"), step("two")], "volumes": [{"name": "work", "emptyDir": {}}]},
            container={
                "volumeMounts": [{"name": "work", "mountPath": "/work"}],
                "env": [{"name": "NOTES", "value": "/work/notes"}],
            },
        )
        async with activator(tmp_path, document) as (served, client):
            _, path = await get(client, "/env?NOTES")
            assert Path(path).read_text() == "one\ntwo\n"
            assert Path(path).is_relative_to(tmp_path / "volumes")
            (wake,) = served.fleet.history
            assert wake.init_done is not None
            assert wake.ready is not None
            assert wake.created < wake.init_done < wake.ready

    run(story())


def test_a_failing_init_container_fails_the_wake_and_is_tried_again_with_backoff(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    script = f"echo x >> {counter}; test $(wc -l < {counter}) -ge 3"

    async def story() -> None:
        document = service(spec={"initContainers": [{"name": "warm", "image": "t", "command": ["sh", "-c", script]}]})
        async with activator(tmp_path, document) as (served, client):
            assert (await get(client, "/"))[0] == 200
            ends = [wake.end for wake in served.fleet.history]
            assert ends == ["init container warm ended with exit code 1"] * 2 + [""]

    run(story())


def test_a_command_that_is_not_gunicorn_gets_a_free_port(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(container={"command": ["python", "-c", HTTP_SERVER], "readinessProbe": {"tcpSocket": {}}})
        async with activator(tmp_path, document) as (served, client):
            assert await get(client, "/") == (200, "ok")
            await asleep(served)

    run(story())


def test_the_environment_is_process_then_manifest_then_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST", "SECOND", "THIRD"):
        monkeypatch.setenv(name, "process")

    async def story() -> None:
        variables = [
            {"name": "SECOND", "value": "manifest"},
            {"name": "THIRD", "value": "manifest"},
            {"name": "SEEN", "value": "$(SECOND)-$(THIRD)-$(K_SERVICE)-$$(SECOND)-$(FIRST)"},
            {"name": "SHARED", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "SHARED"}}},
        ]
        document = service(container={"env": variables, "envFrom": [{"secretRef": {"name": "s"}}]})
        configs = Configs({("ConfigMap", "c"): {"SHARED": "config"}, ("Secret", "s"): {"SECRET": "secret"}})
        async with activator(tmp_path, document, configs=configs, overrides={"THIRD": "set"}) as (_, client):
            wanted = {
                "FIRST": "process",
                "SECOND": "manifest",
                "THIRD": "set",
                "SEEN": "manifest-set-tiny-$(SECOND)-$(FIRST)",
                "SHARED": "config",
                "SECRET": "secret",
                "K_SERVICE": "tiny",
                "K_REVISION": "tiny-00001",
                "K_CONFIGURATION": "tiny",
                "K_SINK": "",
            }
            found = {name: (await get(client, f"/env?{name}"))[1] for name in wanted}
            assert found == wanted
            path = (await get(client, "/env?PATH"))[1]
            assert path.split(os.pathsep)[0] == str(Path(sys.executable).parent)

    run(story())


def test_a_disk_that_takes_no_record_fails_the_wake_and_nothing_is_left_over(tmp_path: Path) -> None:
    """Before the pod's first process and after it; then the disk is well again."""
    (tmp_path / "steps").write_text("")
    before = set(psutil.Process().children(recursive=True))  # other tests of this process may have left a helper

    async def story() -> None:
        step = f"test -s {tmp_path}/steps || rm -r {tmp_path}/pods"
        document = service(spec={"initContainers": [{"name": "rm", "image": "t", "command": ["sh", "-c", step]}]})
        async with activator(tmp_path, document) as (served, client):
            status, text = await get(client, "/")
            assert (status, "No such file or directory" in text) == (503, True)
            assert set(psutil.Process().children(recursive=True)) == before
            (tmp_path / "pods").mkdir()
            (tmp_path / "steps").write_text("done")
            assert (await get(client, "/"))[0] == 200
            await asleep(served)
            assert (served.fleet.in_flight, served.fleet.waiting) == (0, 0)

    run(story())


def test_a_variable_that_no_process_can_have_fails_the_wake(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service(container={"env": [{"name": "A", "value": "a\0b"}]})) as (_, client):
            assert await get(client, "/") == (503, "tiny does not wake: gunicorn: embedded null byte\n")

    run(story())


def test_a_missing_secret_fails_the_wake_by_name(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(container={"envFrom": [{"secretRef": {"name": "absent"}}]})
        async with activator(tmp_path, document) as (_, client):
            assert await get(client, "/") == (503, "tiny does not wake: Secret absent does not exist\n")

    run(story())


def test_host_bodies_cookies_and_streams_pass_and_hop_by_hop_headers_do_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service()) as (_, client):
            headers = {"Host": "swap.example", "Connection": "close, X-Named", "X-Named": "1", "X-Own": "kept"}
            body = os.urandom(900_000)
            async with client.post("/", data=body, headers=headers) as answer:
                facts = await answer.json(content_type=None)
                assert answer.headers.getall("Set-Cookie") == ["a=1", "b=2"]
            assert (facts["length"], facts["host"], facts["named"], facts["own"]) == (
                len(body),
                "swap.example",
                "",
                "kept",
            )

            async def chunks() -> object:
                for _ in range(10):
                    yield b"x" * 1000
                    await asyncio.sleep(0.01)

            async with client.post("/", data=chunks()) as answer:
                assert (await answer.json(content_type=None))["length"] == 10_000
            async with client.get("/stream") as answer:
                assert len(await answer.read()) == 200_000
            async with client.head("/") as answer:
                assert (answer.status, int(answer.headers["Content-Length"]) > 0) == (200, True)

    run(story())


def test_bodies_pass_as_they_are_encoded(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service()) as (_, client):
            for body in (gzip.compress(b"x" * 100_000), b"not gzip at all"):
                async with client.post("/", data=body, headers={"Content-Encoding": "gzip"}) as answer:
                    assert (answer.status, (await answer.json(content_type=None))["length"]) == (200, len(body))

    run(story())


def test_every_form_of_a_target_is_served_or_refused(tmp_path: Path) -> None:
    async def ask(port: int, line: str) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{line} HTTP/1.1\r\nHost: swap.example\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), body

    async def story() -> None:
        async with activator(tmp_path, service()) as (served, _):
            port = int(served.url.rpartition(":")[2])
            for target in ("http://elsewhere.example/a%2Fb?c=%20d", "/a%2Fb?c=%20d"):
                status, body = await ask(port, f"GET {target}")
                assert (status, json.loads(body)["path"]) == (200, "/a%2Fb?c=%20d")
            assert (await ask(port, "OPTIONS *"))[0] == 400
            assert (await ask(port, "CONNECT elsewhere.example:443"))[0] == 400
            assert served.fleet.in_flight == 0

    run(story())


def test_a_caller_that_leaves_while_waiting_is_not_forwarded(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(container={"env": [{"name": "READY_AFTER", "value": "1"}]})
        async with activator(tmp_path, document) as (served, client):
            with pytest.raises(TimeoutError):
                await client.get("/sleep?0", timeout=aiohttp.ClientTimeout(total=0.3))
            status, text = await get(client, "/sleep?0")
            assert (status, text) == (200, "1")
            await asleep(served)
            assert served.fleet.in_flight == 0

    run(story())


def test_a_caller_that_breaks_off_in_mid_upload_frees_its_slot(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(spec={"containerConcurrency": 1}, annotations={"max-scale": "1"})
        async with activator(tmp_path, document, limits=FleetLimits(idle=30)) as (served, client):
            await get(client, "/")
            port = int(served.url.rpartition(":")[2])
            for _ in range(3):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
                await writer.drain()
                await asyncio.sleep(0.1)
                writer.close()
            assert (await get(client, "/"))[0] == 200
            assert served.fleet.in_flight == 0

    run(story())


def test_a_body_that_breaks_off_reaches_the_caller_as_broken(tmp_path: Path) -> None:
    async def story() -> None:
        async with activator(tmp_path, service()) as (_, client), client.get("/broken") as answer:
            assert answer.status == 200
            with pytest.raises(aiohttp.ClientError):
                await answer.read()

    run(story())


def test_a_failing_liveness_probe_restarts_the_pod(tmp_path: Path) -> None:
    async def story() -> None:
        probe = {"httpGet": {"path": "/health/liveness"}, "periodSeconds": 1, "failureThreshold": 1}
        document = service(container={"livenessProbe": probe})
        async with activator(tmp_path, document, limits=FleetLimits(idle=30)) as (served, client):
            await get(client, "/sick")
            async with asyncio.timeout(10):
                while not served.fleet.history[0].stopped:
                    await asyncio.sleep(0.05)
            assert served.fleet.history[0].end == "liveness probe failed"
            assert (await get(client, "/"))[0] == 200

    run(story())


def test_a_failing_startup_probe_fails_the_wake(tmp_path: Path) -> None:
    async def story() -> None:
        probe = {"httpGet": {"path": "/health/readiness"}, "periodSeconds": 1, "failureThreshold": 1}
        document = service(container={"startupProbe": probe, "env": [{"name": "READY_AFTER", "value": "30"}]})
        async with activator(tmp_path, document) as (_, client):
            assert await get(client, "/") == (503, "tiny does not wake: startup probe failed\n")

    run(story())


def test_closing_finishes_what_is_in_hand_and_refuses_the_rest(tmp_path: Path) -> None:
    async def story() -> None:
        document = service(spec={"containerConcurrency": 1}, annotations={"max-scale": "1"})
        async with activator(tmp_path, document) as (served, client):
            await get(client, "/")
            working = asyncio.ensure_future(get(client, "/sleep?1"))
            waiting = asyncio.ensure_future(get(client, "/"))
            await asyncio.sleep(0.3)
            await served.close(5)
            assert await working == (200, "1")
            assert await waiting == (503, "tiny does not wake: the platform is stopping\n")
            assert not served.fleet.pods

    run(story())


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    async def story() -> None:
        script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + HTTP_SERVER
        document = service(container={"command": ["python", "-c", script], "readinessProbe": {"tcpSocket": {}}})
        async with activator(tmp_path, document, grace=0.5) as (served, client):
            await get(client, "/")
            await asleep(served)
            (wake,) = served.fleet.history
            assert wake.ready is not None
            assert wake.stopped is not None
            assert wake.stopped - wake.ready >= 1.0

    run(story())
