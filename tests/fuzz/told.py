"""Events: those of tests/events and what queues, clocks and buckets send, changed, in either mode, signed or not."""

from __future__ import annotations

import copy
import json
import random
import uuid
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shared.errors import WakeswapError
from shared.events.codec import STRUCTURED, decode, encode_binary
from tests.fuzz.damage import VALUES, change, damage
from tests.fuzz.sent import Tally
from tests.fuzz.servers import TOKEN, Server
from tests.signing import EXAMPLES, signed

_FOREIGN = Path(__file__).parents[1] / "data" / "event"
_JOB = "5f0c9c55-5d6a-5a1c-9e21-6f1b8d0e52a7"
"""Of the examples; most of those that are sent are about jobs of their own."""
_KINDS = (STRUCTURED, "application/cloudevents+json; charset=utf-16", "application/cloudevents-batch+json",
          "application/cloudevents+avro", "application/json", "application/json; charset=utf-7", "text/plain", "",
          "application/cloudevents+json; charset=" + "x" * 500, "application/x-www-form-urlencoded",
          "multipart/form-data; boundary=x", "application/octet-stream", "a/b; c=\"")  # fmt: skip


@cache
def _documents() -> list[str]:
    """Texts of CloudEvents in structured mode, ours and foreign ones."""
    ours = [path.read_text() for path in sorted(EXAMPLES.glob("*.json"))]
    foreign = [path.read_text() for path in sorted(_FOREIGN.glob("ce_*.json"))]
    jobs = [text for text in ours if '"origin": ' in text and '"request"' not in text]
    return [*ours, *jobs * 6, *foreign]


@cache
def _notifications() -> list[str]:
    return [path.read_text() for path in sorted(_FOREIGN.glob("*.json")) if not path.name.startswith("ce_")]


def events(servers: dict[str, Server], tally: Tally, count: int, number: int) -> None:
    """`count` events, half of them to intake."""
    chance = random.Random(number)
    for _ in range(count):
        door = chance.choice(("intake", "intake", "relay", "dead_letter"))
        headers, body = _event(chance)
        path = chance.choice(("/", "/", "/", "/", "/wake")) if door == "relay" else "/"
        answer = servers[door].send("POST", path, headers, body)
        tally.note(f"event to {door}", f"round {number}: {str(headers)[:400]} {body[:400]!r}", answer)


def notifications(server: Server, tally: Tally, count: int, number: int) -> None:
    """`count` bucket notifications to /events/s3."""
    chance = random.Random(number)
    for _ in range(count):
        document = json.loads(chance.choice(_notifications()))
        for _ in range(chance.randint(1, 4)):
            document = change(document, chance)
        body = json.dumps(document).encode()
        if chance.random() < 0.3:
            body = damage(body, chance)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": chance.choice(_KINDS)}
        answer = server.send("POST", "/events/s3", headers, body)
        tally.note("POST /events/s3", f"round {number}: {body[:500]!r}", answer)


def _event(chance: random.Random) -> tuple[dict[str, str], bytes]:
    text = chance.choice(_documents())
    if chance.random() < 0.7:
        text = text.replace(_JOB, str(uuid.UUID(int=chance.getrandbits(128))))
    document = json.loads(text)
    if isinstance(document, dict) and chance.random() < 0.9:
        document["id"] = f"e-{chance.random()}"
    for _ in range(chance.randint(0, 3)):
        document = change(copy.deepcopy(document), chance)
    made = _signed(document) if chance.random() < 0.6 else None
    headers, body = made if made is not None else _as_is(document, chance)
    if chance.random() < 0.25:
        body = damage(body, chance)
    if chance.random() < 0.2:
        headers["content-type"] = chance.choice(_KINDS)
    if chance.random() < 0.1:
        headers[chance.choice(("ce-id", "ce-tenantid", "ce-proof", "ce-type", "ce-x"))] = _text(chance)
    return headers, body


def _signed(document: Any) -> tuple[dict[str, str], bytes] | None:
    """In binary mode, with a right proof, where what the changes left can be an event at all."""
    try:
        event = decode({"content-type": STRUCTURED}, json.dumps(document).encode(), limit=10**7)
        return encode_binary(signed(event))
    except WakeswapError:
        return None


def _as_is(document: Any, chance: random.Random) -> tuple[dict[str, str], bytes]:
    if not isinstance(document, dict) or chance.random() < 0.6:
        return {"content-type": STRUCTURED}, json.dumps(document).encode()
    headers = {f"ce-{_plain(name)}": _plain(value) for name, value in document.items() if name != "data"}
    return {**headers, "content-type": "application/json"}, json.dumps(document.get("data")).encode()


def _plain(value: object) -> str:
    """As much of a value as a client can put into a header."""
    text = quote(str(value).encode("utf-8", "replace"), safe="/:.-_+ ")[:8000]
    return text or "x"


def _text(chance: random.Random) -> str:
    text = str(chance.choice(VALUES)())[:4000]
    return "".join(letter for letter in text if " " <= letter < "\x7f" or "\xa0" <= letter <= "\xff")
