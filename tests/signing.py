"""The key with which tests sign the events that they deliver themselves, as intake and the stages would.

`python -m tests.signing` signs the examples in tests/events anew, after one was changed.
"""

from __future__ import annotations

import json
from pathlib import Path

from shared.events import proof
from shared.events.codec import STRUCTURED, decode
from shared.events.event import Event

EVENT_KEYS = "test=0123456789abcdef0123456789abcdef"
EXAMPLES = Path(__file__).with_name("events")


def signed(event: Event) -> Event:
    return proof.read(EVENT_KEYS).sign(event)


def sign_examples() -> None:
    for path in EXAMPLES.glob("*.json"):
        document = json.loads(path.read_text())
        event = signed(decode({"content-type": STRUCTURED}, path.read_bytes(), limit=65536))
        document["proof"] = event.extensions["proof"]
        document["data"] = document.pop("data")
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sign_examples()
