"""One call, one JSON line, and no secret in it (field case SEC-06)."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from shared.telemetry import logs
from shared.telemetry.logs import bind, configure, stage_log

KEY = "k3y-0f-the-demo-tenant/+="
WEBHOOK = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "eyJhbGciOi.payload.signature"
OWN_KEY = "wk_abcdefgh_" + "a2" * 26
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtYXJpYSJ9.c2lnbmF0dXJl"
LINK = (
    "https://s3.example.com/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAEXAMPLE%2F20261130"
    "&X-Amz-Security-Token=FwoGZXIvYXdzEXAMPLE&X-Amz-Signature=0a1b2c3d4e5f"
)
HIDDEN = (
    KEY,
    WEBHOOK,
    WEBHOOK.removeprefix("whsec_"),
    TOKEN,
    "AKIAEXAMPLE",
    "FwoGZXIv",
    "0a1b2c3d4e5f",
    "hunter2",
    "\\x89PNG",
    OWN_KEY,
    JWT,
    "Maria",
    "Muster",
    "maria",
)


class Lines:
    """What was logged so far, raw and read."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def raw(self) -> list[str]:
        return self.stream.getvalue().splitlines(keepends=True)

    def __call__(self) -> list[dict[str, Any]]:
        assert all(line.endswith("\n") for line in self.raw)
        return [json.loads(line) for line in self.raw]


@pytest.fixture
def lines() -> Iterator[Lines]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.raiseExceptions, sys.excepthook, threading.excepthook)
    collected = Lines()
    configure("DEBUG", [KEY, WEBHOOK], collected.stream)
    yield collected
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level, logging.raiseExceptions, sys.excepthook, threading.excepthook = before


log = logging.getLogger("wakeswap.test")


def fail(text: str) -> None:
    raise PermissionError(text)


def wrap(text: str) -> None:
    try:
        fail(text)
    except PermissionError as error:
        raise RuntimeError("wrapped") from error


def test_sec_06_what_helps_stays(lines: Lines) -> None:
    log.info("GET https://pictures.example.com/a.jpg?x=1 gave 403 for wk_abcdefgh_%s", "a2" * 26)
    log.info("secret: missing; Must be whsec_ and base64; key wrong")
    messages = [str(line["message"]) for line in lines()]
    assert messages[0] == "GET https://pictures.example.com/a.jpg?[redacted] gave 403 for wk_abcdefgh_[redacted]"
    assert messages[1].endswith("Must be whsec_ and base64; key wrong")


def test_sec_06_a_line_break_in_a_key_makes_no_second_line(lines: Lines) -> None:
    log.info("key %s", "a\r\n2026 CRITICAL admin logged in\x1b[31m\x7f\u2028\x85x", extra={"key": "a\nb"})
    assert len(lines.raw) == 1
    assert lines.raw[0].isascii()
    assert not any(ord(character) < 0x20 or character == "\x7f" for character in lines.raw[0].rstrip("\n"))
    (line,) = lines()
    assert (line["level"], line["key"]) == ("INFO", "a\nb")


@pytest.mark.parametrize(
    "text",
    [
        f"GET {LINK} gave 403",
        f"Authorization: Bearer {TOKEN}",
        f"{{'Authorization': 'Bearer {TOKEN}', 'X-Amz-Security-Token': 'FwoGZXIvYXdzEXAMPLE'}}",
        f"bearer {KEY}",
        f"key={KEY}",
        "key=k3y-0f-the-demo-tenant%2F%2B%3D",
        f"signed with {WEBHOOK}",
        f"signed with {WEBHOOK.removeprefix('whsec_')}",
        "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261130, SignedHeaders=host, Signature=0a1b2c3d4e5f",
        "redirect?url=https%3A%2F%2Fs3%2Fk%3FX-Amz-Signature%3D0a1b2c3d4e5f",
        "https://user:hunter2@example.com/",
        "redis://:hunter2@127.0.0.1:6379/0 does not answer",
        "password='hunter2', client_secret: hunter2",
        f"token {JWT} refused",
        f"key {OWN_KEY} opens nothing",
        "https://pictures.example.com/a.jpg?sig=hunter2&sp=r gave 403",
        "https%3A%2F%2Fpictures.example.com%2Fa.jpg%3Fsig%3Dhunter2",
        "No object tenants/demo/inbox/Maria Muster, Mai '26/source.jpg.",
        "GET /wakeswap/tenants%2Fdemo%2Finbox%2FMaria%20Muster.jpg",
        'Content-Disposition: form-data; name="source"; filename="Maria Muster.jpg"',
        "sent by maria.muster@example.com",
        "cannot decode " + repr(b"\x89PNG" + bytes(range(64))),
    ],
)
def test_sec_06_secrets_show_nowhere(lines: Lines, text: str) -> None:
    log.debug(text)
    log.info("%s", text, extra={"fact": text, "facts": {"inner": [text], text: 1}})
    try:
        wrap(text)
    except RuntimeError:
        log.exception("failed")
    log.warning("stack", stack_info=True)
    assert len(lines()) == 4
    assert not [secret for secret in HIDDEN if secret in lines.stream.getvalue()]
    assert "PermissionError" in lines()[2]["exception"]


@pytest.mark.parametrize("piece", ["http://", "a.b@", "tenants/a/inbox/", "secret=", "eyJaaaa.", "b'", "a-"])
def test_a_text_made_to_be_slow_is_not(lines: Lines, piece: str) -> None:
    """What grows with the square of its length would run into the time limit of the tests."""
    log.info(piece * (400_000 // len(piece)))
    assert len(lines()) == 1


@pytest.mark.parametrize("data", [b"\x89PNG" * 50, bytearray(200), memoryview(bytes(200))])
def test_sec_06_bytes_are_named_by_their_size(lines: Lines, data: bytes) -> None:
    log.info("got %s", data, extra={"data": data})
    log.info(data)
    assert [line["message"] for line in lines()] == ["got <200 bytes>", "<200 bytes>"]
    assert lines()[0]["data"] == "<200 bytes>"


def test_what_may_be_said_is_said(lines: Lines) -> None:
    text = "tenant demo key tenants/demo/jobs/j1/swap/pixels.npy digest " + "0" * 64
    log.info(text, extra={"seconds": 0.25, "count": 3, "ok": True, "none": None, "nan": float("nan")})
    (line,) = lines()
    assert line["message"] == text
    assert (line["seconds"], line["count"], line["ok"], line["none"], line["nan"]) == (0.25, 3, True, None, "nan")
    assert line["logger"] == "wakeswap.test"
    assert line["time"].endswith("+00:00")


def test_bound_fields_are_in_every_line_inside_and_in_none_after(lines: Lines) -> None:
    with bind(tenant="demo", job="j1", event=""), bind(trace_id="t1"):
        logging.getLogger("some.library").warning("inside")
    log.info("outside")
    inside, outside = lines()
    assert {name: inside.get(name) for name in ("tenant", "job", "trace_id", "event")} == {
        "tenant": "demo",
        "job": "j1",
        "trace_id": "t1",
        "event": None,
    }
    assert "tenant" not in outside


def test_threads_do_not_see_each_others_fields(lines: Lines) -> None:
    barrier = threading.Barrier(2)

    def work(tenant: str) -> None:
        with bind(tenant=tenant):
            barrier.wait(5)
            log.info(tenant)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(line["tenant"] for line in lines()) == ["a", "b"]
    assert all(line["tenant"] == line["message"] for line in lines())


def test_a_stages_log_names_the_stage_and_keeps_the_calls_own_fields(lines: Lines) -> None:
    stage_log("detect").info("found", extra={"faces": 2})
    (line,) = lines()
    assert (line["stage"], line["faces"], line["logger"]) == ("detect", 2, "wakeswap.detect")


def test_a_field_cannot_overwrite_what_the_line_says_of_itself(lines: Lines) -> None:
    log.info("x", extra={"level": "CRITICAL", "time": "never"})
    assert lines()[0]["level"] == "INFO"
    assert lines()[0]["time"] != "never"


@pytest.mark.parametrize(
    ("message", "args"), [("%d faces", ("two",)), ("%s %s", ("one",)), ("100 %", ("x",)), ("%(a)s", ({"b": 1},))]
)
def test_a_wrong_format_string_does_not_cost_the_line(lines: Lines, message: str, args: tuple[object, ...]) -> None:
    log.info(message, *args)
    assert lines()[0]["message"].startswith(message)


def test_long_values_are_cut_after_secrets_are_gone(lines: Lines) -> None:
    log.info("%s %s", "- " * (logs.LONGEST // 2 - 2), KEY)
    (line,) = lines()
    assert len(line["message"]) < logs.LONGEST + 50
    assert KEY[:4] not in line["message"][-60:]


def test_warnings_and_deaths_are_lines_too(lines: Lines) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(f"deprecated {KEY}", DeprecationWarning, stacklevel=1)
    thread = threading.Thread(target=lambda: json.loads("{"))
    thread.start()
    thread.join(5)
    sys.excepthook(ValueError, ValueError(f"died of {KEY}"), None)
    levels = [line["level"] for line in lines()]
    assert levels == ["WARNING", "CRITICAL", "CRITICAL"]
    assert "JSONDecodeError" in lines()[1]["exception"]
    assert KEY not in lines.stream.getvalue()


def test_a_quiet_level_is_quiet_and_clients_never_log_their_requests(lines: Lines) -> None:
    configure("WARNING", stream=lines.stream)
    log.info("not said")
    configure("DEBUG", stream=lines.stream)
    logging.getLogger("botocore.auth").debug("StringToSign ...")
    log.debug("said")
    assert [line["message"] for line in lines()] == ["said"]
