"""Nothing of a picture lies on a machine's disk when its event is over, however it ended (architecture, 6)."""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from PIL import Image

from shared.events.codec import encode_binary
from shared.events.payloads import Job, ObjectRef, Result
from shared.serving.outcome import Outcomes
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore
from tests.services.process import StageProcess, listening, running
from tests.signing import signed
from tests.unit.serving.support import JOB, event, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def picture(kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "HEIF":
        import pillow_heif

        pillow_heif.register_heif_opener()
    Image.effect_noise((400, 300), 80).convert("RGB").save(out, kind)
    return out.getvalue()


@pytest.fixture(params=["PNG", "HEIF", "TIFF"])
def sent(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Job]:
    """A job whose target is such a picture; two of them are decoded in a child of the stage."""
    kind = str(request.param)
    types = {"PNG": "image/png", "HEIF": "image/heic", "TIFF": "image/tiff"}
    store = TenantStore(LocalStore(tmp_path / "objects"), "demo", JOB, "input")
    ref = store.save("target-0", picture(kind), types[kind])
    return lambda origin: Job(JOB, (ref,), ref, origin=origin)


def left(root: Path) -> list[str]:
    """Files of the scratch folder and of the store's own."""
    folders = (root / "scratch", root / "objects/.store/tmp")
    return [str(path) for folder in folders for path in folder.rglob("*") if path.is_file()]


def settings(root: Path, **more: str) -> dict[str, str]:
    (root / "scratch").mkdir(exist_ok=True)
    return {"TMPDIR": str(root / "scratch"), "WAKESWAP_LEASE_SECONDS": "1", **more}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[StageProcess]:
    with running("scratch", tmp_path, **settings(tmp_path)) as process:
        process.wait_ready(60)
        yield process


def test_after_a_success_and_a_rejection(stage: StageProcess, sent: Callable[[str], Job], tmp_path: Path) -> None:
    assert stage.deliver(event(sent("end"), event_id="e-1")).status == 200
    assert left(tmp_path) == []
    assert stage.deliver(event(sent("reject"), event_id="e-2")).status == 200
    assert left(tmp_path) == []


def test_after_a_death(sent: Callable[[str], Job], tmp_path: Path) -> None:
    with running("scratch", tmp_path, **settings(tmp_path)) as process:
        process.wait_ready(60)
        with suppress(http.client.HTTPException, OSError):
            process.deliver(event(sent("die"), event_id="e-1"))
        assert LocalStore(tmp_path / "objects").head(keys.job("demo", JOB, "scratch", "pixels.npy")), "it had worked"
        process.wait_ready(60)  # gunicorn has started another worker
        assert left(tmp_path) == []


def test_when_time_is_up(sent: Callable[[str], Job], tmp_path: Path) -> None:
    with running("scratch", tmp_path, **settings(tmp_path, WAKESWAP_TIMEOUT_SECONDS="3")) as process:
        process.wait_ready(60)
        assert process.deliver(event(sent("work on"), event_id="e-1")).status == 503
        assert left(tmp_path) == []


def test_when_the_power_goes(sent: Callable[[str], Job], tmp_path: Path) -> None:
    """Master, worker and the decoder's process at once, in the middle of the work."""
    with listening() as listener:
        process = StageProcess("scratch", tmp_path, listener, **settings(tmp_path))
        process.wait_ready(60)
        headers, body = encode_binary(signed(event(sent("work on"), event_id="e-1")))
        with closing(process.connect()) as connection:
            connection.request("POST", "/", body, headers)
            until((tmp_path / "objects" / keys.job("demo", JOB, "scratch", "pixels.npy")).exists, 60)
            process.kill()
        again = StageProcess("scratch", tmp_path, listener, **settings(tmp_path))
        try:
            again.wait_ready(60)
            assert left(tmp_path) == []
        finally:
            again.kill()


def test_a_result_is_streamed_without_a_file_that_has_a_name(tmp_path: Path) -> None:
    store, key = LocalStore(tmp_path / "objects"), "key-of-demo-0123456789"
    data = picture("PNG")
    store.put(keys.result("demo", f"{JOB}.png"), data, content_type="image/png")
    image = ObjectRef(keys.result("demo", f"{JOB}.png"), "0" * 64, len(data), "image/png")
    assert Outcomes(store, "publish").settle("demo", Result(JOB, image, 4, 3, (), "file:///x", "2030-01-01"), "c")
    environ = settings(tmp_path, WAKESWAP_API_KEYS=f"demo={key}", K_SINK="http://127.0.0.1:9/")
    with running("intake", tmp_path, package="functions", **environ) as process:
        process.wait_ready(60)
        with closing(process.connect()) as connection:
            connection.request("GET", f"/v1/jobs/{JOB}/result", headers={"Authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            assert left(tmp_path) == [], "not even while it is sent"
            assert answer.read() == data
