"""docs/events.md: the types with who sends and who hears them, the proof, and the payloads field by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_args

import yaml
from marking import MADE, Docs, code, field_docs, table

from shared.events import payloads


def page(root: Path) -> str:
    docs = field_docs(root / "shared/events/payloads.py")
    examples = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((root / "tests/events").glob("*.json"))]
    triggers = list(_triggers(root / "knative/base"))
    rows = [
        (
            code(event["type"]),
            code(event["media"]),
            code(event["source"]),
            _link(_payload(event)),
            _listeners(event, triggers),
        )
        for event in examples
    ]
    shapes = [_shape(kind, docs) for kind in _shapes()]
    return (
        "\n\n".join(
            (MADE, _INTRODUCTION, table(_EVENT_HEAD, rows), _PROOF, "## Payloads", _PAYLOADS, *shapes, _EXAMPLES)
        )
        + "\n"
    )


_EVENT_HEAD = ("Type", "Media", "Sent by", "Data", "Goes to")

_INTRODUCTION = """# Events

Every event is a CloudEvent 1.0 over HTTP, in binary or structured mode; batches are refused. References travel,
pixels do not: no event is larger than 64 KiB.

| Attribute | Value |
| --- | --- |
| `type` | `dev.wakeswap.<stage>.<outcome>.v1`; the outcome is `completed`, `rejected` or `failed` |
| `source` | `/wakeswap/<stage>` |
| `subject` | the job's id |
| `id` | a UUID made from the stage, the cause's source and id, the outcome and the part: same cause, same id |
| `tenantid` | the tenant, set by intake after authentication; never taken from data |
| `media` | what the event is about: `image`, `video`, or `segment`, one part of a video |
| `priority` | `interactive` or `batch` |
| `enhance` | `true` when the job's options name an enhancer or an upscaler, else absent |
| `wake` | the tenant's policy: `ahead` or `after-moderation`; absent for `none` |
| `traceparent` | W3C trace context |
| `partitionkey` | the job's id |
| `proof` | `<key id>.<digest>`: that this installation made the event, see [Proof](#proof) |

A job ends with exactly one of `publish.completed`, a `rejected` (the caller's own fault) or a `failed` event (ours;
the original is kept for replay). The paths `/wake` below are for the policy `ahead`; with `after-moderation` the
stages after detect hear `moderate.completed` there instead, so that a refused picture wakes nothing. Who follows
whom is written in the Triggers under `knative/base`, and nowhere else.

## Types"""

_PROOF = """## Proof

Whoever may publish to the broker could name any tenant. So each event of ours carries `proof`: the id of a key of
`WAKESWAP_EVENT_KEYS` and the HMAC-SHA256, in hex, over `id`, `source`, `type`, `subject`, `tenantid`, `media`,
`priority`, `enhance`, `wake` and the data as a JSON value. Header case, structured mode, percent-encoding, the JSON's
white space and what brokers add (`knative...`, `traceparent`) do not matter to it. A stage refuses an event without a
right proof with 403 `untrusted_event`, which a broker does not send again, before it touches anything of a tenant; dead
letter keeps the original and says nothing about a job. `/wake` reads no event: it answers 204 and does no work.

To change keys: add the new one at the end (`k1=...,k2=...`) everywhere, then make it the first, and drop the old one
when nothing signed with it can come again: stages' repeated replies and what `replay` sends keep the proof they were
made with. To introduce keys in an installation that runs, `k1=...,unsigned` takes events without a proof meanwhile.

Events of others start jobs and have a trust of their own:

- Upload notifications name an object; its key names the tenant, and what lies there now decides. A forged one can only
  start what the tenant itself has put into its inbox. `POST /events/s3` needs `WAKESWAP_NOTIFICATION_TOKEN`.
- A PingSource names the tenant in its data, which nothing here can check: whoever may send
  `dev.knative.sources.ping` to the broker, or create a PingSource in the namespace, can have a tenant's waiting uploads
  processed early, once, under that tenant's own policy, and see nothing of it. Let only the namespace's sources
  publish: an EventPolicy of Knative's with OIDC on the broker, or a network policy on its ingress, and RBAC on
  PingSources.
- `knativeerror...` is written by the broker on the way to dead letter, so no proof can cover it. Whoever can both
  read events and reach the Service `dead-letter` could fail a job that it has seen: keep that Service cluster-local
  and behind a network policy.

An event that was read and is sent again says the same as before, and gets the recorded reply."""

_PAYLOADS = """Readers ignore names that they do not know and refuse an event in which one without a default is missing,
so producers can be deployed first."""

_EXAMPLES = """## Examples

One event of each type and medium, in structured mode, lies in `tests/events`, signed with the tests' key; the tests
decode each of them."""


def _shapes() -> list[type]:
    """The payloads, then the records inside them, in the order of the module."""
    heads = list(get_args(payloads.Payload))
    inner = [
        kind for kind in vars(payloads).values() if isinstance(kind, type) and kind.__module__ == payloads.__name__
    ]
    return heads + [kind for kind in inner if kind not in heads]


def _payload(event: dict[str, Any]) -> str:
    for kind in get_args(payloads.Payload):
        if {item.name for item in fields(kind)} == set(event["data"]):
            return str(kind.__name__)
    raise LookupError(f"{event['type']}: the example's data is no payload with all its fields")


def _shape(kind: type, docs: Docs) -> str:
    rows = []
    for item in fields(kind):
        default = "required" if item.default is MISSING and item.default_factory is MISSING else _default(item)
        rows.append((code(item.name), _type(str(item.type)), default, docs[kind.__name__].get(item.name, "")))
    return f"### {kind.__name__}\n\n{docs[kind.__name__]['']}\n\n" + table(
        ("Field", "Type", "Default", "Meaning"), rows
    )


def _default(item: Field[Any]) -> str:
    return code(json.dumps(item.default)) if item.default is not MISSING else "optional"


def _type(annotation: str) -> str:
    names = {kind.__name__ for kind in _shapes()}
    inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
    shown = _link(inner) if inner in names else code(inner)
    return f"list of {shown}" if inner != annotation else shown


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _triggers(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if isinstance(document, dict) and document.get("kind") == "Trigger":
                yield document["spec"]


def _listeners(event: dict[str, Any], triggers: list[dict[str, Any]]) -> str:
    plain, asked = (_hearing(event | more, triggers) for more in ({}, {"enhance": "true"}))
    names = ", ".join(sorted(plain))
    if plain == asked:
        return names
    return f"{names}; with `enhance` {'instead' if plain - asked else 'also'} {', '.join(sorted(asked - plain))}"


def _hearing(event: dict[str, Any], triggers: list[dict[str, Any]]) -> set[str]:
    found = set()
    for spec in triggers:
        if all(_matches(entry, event) for entry in spec.get("filters", [])):
            subscriber = spec["subscriber"]
            found.add(subscriber["ref"]["name"] + (f" ({subscriber['uri']})" if "uri" in subscriber else ""))
    return found


def _matches(entry: dict[str, Any], event: dict[str, Any]) -> bool:
    """Knative's filter dialects, so that the page shows what a broker would do."""
    ((dialect, value),) = entry.items()
    if dialect in ("any", "all"):
        outcomes = [_matches(inner, event) for inner in value]
        return any(outcomes) if dialect == "any" else all(outcomes)
    if dialect == "not":
        return not _matches(value, event)
    compare = _COMPARE[dialect]
    return all(name in event and compare(str(event[name]), wanted) for name, wanted in value.items())


_COMPARE: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda text, wanted: text == wanted,
    "prefix": lambda text, wanted: text.startswith(wanted),
    "suffix": lambda text, wanted: text.endswith(wanted),
}
