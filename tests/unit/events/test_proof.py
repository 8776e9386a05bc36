"""The proof on an event: which changes it finds, which it outlives, and how keys are changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from shared.errors import ConfigError
from shared.events import proof
from shared.events.codec import STRUCTURED, decode, encode_binary, encode_structured
from shared.events.event import Event
from shared.events.proof import EventKeys, read
from shared.refusals import UntrustedEventError

OLD, NEW = f"k1={'1' * 32}", f"k2={'2' * 32}"
KEYS = read(OLD)
EXAMPLES = sorted((Path(__file__).parents[2] / "events").glob("*.json"))


def example(path: Path) -> Event:
    return without(decode({"content-type": STRUCTURED}, path.read_bytes(), limit=65536), "proof")


def job() -> Event:
    path = next(path for path in EXAMPLES if path.stem == "intake.completed")
    return example(path)


def with_extensions(event: Event, **changed: str) -> Event:
    return replace(event, extensions={**event.extensions, **changed})


def without(event: Event, name: str) -> Event:
    return replace(event, extensions={key: value for key, value in event.extensions.items() if key != name})


def refused(keys: EventKeys, event: Event) -> str:
    assert not keys.proves(event)
    with pytest.raises(UntrustedEventError) as caught:
        keys.verify(event)
    return caught.value.detail


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_event_of_the_contract_can_be_signed_and_believed(path: Path) -> None:
    signed = KEYS.sign(example(path))
    assert str(signed.extensions["proof"]).startswith("k1.")
    assert without(signed, "proof") == example(path)
    KEYS.verify(signed)
    assert KEYS.sign(signed) == signed, "signing again changes nothing"


@pytest.mark.parametrize(
    "forged",
    [
        with_extensions(KEYS.sign(job()), tenantid="other"),
        with_extensions(KEYS.sign(job()), media="video"),
        with_extensions(KEYS.sign(job()), priority="batch"),
        with_extensions(KEYS.sign(job()), enhance="true"),
        with_extensions(KEYS.sign(job()), wake="after-moderation"),
        without(KEYS.sign(job()), "tenantid"),
        without(KEYS.sign(job()), "wake"),
        replace(KEYS.sign(job()), id="another"),
        replace(KEYS.sign(job()), source="/wakeswap/moderate"),
        replace(KEYS.sign(job()), type="dev.wakeswap.moderate.completed.v1"),
        replace(KEYS.sign(job()), subject="job-00000002"),
        replace(KEYS.sign(job()), data={"job": "x"}),
        replace(KEYS.sign(job()), data=None),
        replace(KEYS.sign(job()), data=b"{}"),
        replace(KEYS.sign(replace(job(), data={})), data=b"{}"),
        with_extensions(job(), proof=str(KEYS.sign(replace(job(), id="another")).extensions["proof"])),
        with_extensions(job(), proof="k1."),
        with_extensions(job(), proof="k1"),
        with_extensions(job(), proof="k1." + "0" * 64),
        with_extensions(job(), proof=str(KEYS.sign(job()).extensions["proof"]).upper().replace("K1", "k1")),
        with_extensions(job(), proof="k1." + chr(0x663) * 64),
    ],
)
def test_an_event_that_says_anything_else_than_what_was_signed_is_refused(forged: Event) -> None:
    assert refused(KEYS, forged) == "The event's proof is not that of this event."


def test_one_value_deep_in_the_data_counts() -> None:
    signed = KEYS.sign(job())
    assert isinstance(signed.data, dict)
    target = signed.data["target"]
    assert isinstance(target, dict)
    changed = {**signed.data, "target": {**target, "key": "tenants/other/inbox/a.png"}}
    refused(KEYS, replace(signed, data=changed))


def test_no_proof_and_a_key_that_is_not_known_are_refused() -> None:
    assert refused(KEYS, job()) == "The event has no proof of who made it."
    assert "a key that is not known" in refused(KEYS, read(NEW).sign(job()))
    assert "a key that is not known" in refused(KEYS, with_extensions(job(), proof="." + "0" * 64))


def shouted(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.upper(): value for name, value in headers.items()}


def escaped(headers: Mapping[str, str]) -> dict[str, str]:
    """Every character of every attribute that may be percent-encoded is."""
    return {
        name: "".join(f"%{byte:02x}" for byte in value.encode()) if name.startswith("ce-") else value
        for name, value in headers.items()
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_a_broker_may_do_to_an_event_leaves_the_proof_right(path: Path) -> None:
    signed = KEYS.sign(with_extensions(example(path), note="grüße, 100 %"))
    headers, body = encode_binary(signed)
    structured, document = encode_structured(signed)
    loose = json.dumps(json.loads(document), indent=3, ensure_ascii=False).encode()
    backwards = json.dumps(dict(reversed(json.loads(body).items())), ensure_ascii=True).encode()
    for fields, data in (
        (shouted(headers), body),
        (escaped(headers), body),
        ({**headers, "ce-note": quote("grüße, 100 %", safe="")}, body),
        (headers, json.dumps(json.loads(body), indent=1).encode()),
        (headers, backwards),
        (headers, body.replace(b".0,", b",").replace(b".0}", b"}")),
        ({**headers, "content-type": "application/json; charset=utf-16"}, body.decode().encode("utf-16")),
        ({**headers, "ce-traceparent": f"00-{'1' * 32}-{'2' * 16}-01", "ce-time": "2027-01-01T00:00:00Z"}, body),
        ({**headers, "ce-knativeerrorcode": "503", "ce-knativearrivaltime": "2027-01-01T00:00:00Z"}, body),
        (structured, document),
        (structured, loose),
    ):  # fmt: skip
        KEYS.verify(decode(fields, data, limit=1_000_000))


def test_keys_are_changed_while_events_travel() -> None:
    before, between, after = read(OLD), read(f"{NEW}, {OLD}"), read(NEW)
    prepared = read(f"{OLD},{NEW}")
    assert prepared.sign(job()) == before.sign(job()), "the first signs"
    for event in (before.sign(job()), after.sign(job())):
        prepared.verify(event)
        between.verify(event)
    assert between.sign(job()) == after.sign(job())
    refused(after, before.sign(job()))


def test_running_without_proofs_is_said() -> None:
    off = read("unsigned")
    assert off.sign(job()) == job()
    off.verify(job())
    off.verify(with_extensions(job(), proof="k9.0"))


def test_events_without_a_proof_are_taken_while_it_is_introduced_and_wrong_ones_are_not() -> None:
    both = read(f"{OLD},unsigned")
    both.verify(job())
    both.verify(KEYS.sign(job()))
    refused(both, with_extensions(KEYS.sign(job()), tenantid="other"))
    refused(both, read(NEW).sign(job()))
    assert both.sign(job()) == KEYS.sign(job())


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "k1", "k1=", "k1=short", f"={'1' * 32}", f"K1={'1' * 32}", "1" * 64, f"k1={'1' * 31} ",
     f"{OLD},{OLD}", f"{OLD};{NEW}x y", f"k1={'ü' * 32}", f"{'k' * 17}={'1' * 32}", "Unsigned", "none"],
)  # fmt: skip
def test_keys_that_cannot_work_are_refused_by_the_name_of_the_setting_and_never_shown(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert caught.value.context == {"variable": "WAKESWAP_EVENT_KEYS"}
    assert "1111" not in caught.value.detail


def test_a_secret_is_not_shown() -> None:
    assert "1111" not in repr(read(OLD))
    assert proof.ATTRIBUTE == "proof"
