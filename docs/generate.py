"""Write what is made from the code: docs/events.md, models.md, options.md, settings.md and tenant.schema.json.

`python docs/generate.py` writes them; with `--check` it writes nothing and fails when one is stale. It reads
docstrings under fields, the example events in tests/events, the Triggers in knative/base and the catalogue.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import metric_page  # noqa: E402
import model_page  # noqa: E402 - after the path is set
import yaml  # noqa: E402
from marking import MADE, code, table  # noqa: E402

from shared import settings  # noqa: E402
from shared.events import choices, payloads  # noqa: E402
from shared.tenancy import schema  # noqa: E402
from shared.vision.unsuited import EMBEDDED, POOR, REASONS  # noqa: E402

Docs = dict[str, dict[str, str]]


def main() -> int:
    pages = {
        "events.md": events(),
        "metrics.md": metric_page.page(),
        "models.md": model_page.page(),
        "options.md": options(),
        "settings.md": settings_page(),
        "tenant.schema.json": tenant_schema(),
    }
    stale = []
    for name, text in pages.items():
        path = ROOT / "docs" / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(("stale: " if "--check" in sys.argv else "written: ") + ", ".join(stale))  # noqa: T201
    return int(bool(stale) and "--check" in sys.argv)


def field_docs(source: Path) -> Docs:
    """The docstring under every field of every class of a module; "" is the class's own."""
    found: Docs = {}
    for item in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(item, ast.ClassDef):
            found[item.name] = {"": ast.get_docstring(item) or "", **dict(_below_fields(item))}
    return found


def _below_fields(item: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, below in zip(item.body, item.body[1:], strict=False):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            yield statement.target.id, " ".join(below.value.value.split())


# settings


def settings_page() -> str:
    sources = ("settings", "edge_settings", "trace_settings")
    docs = {name: docs for source in sources for name, docs in field_docs(ROOT / f"shared/{source}.py").items()}
    parts = [
        MADE,
        "# Settings",
        "Environment variables, read once when a process starts. An empty variable counts as unset; a value that "
        "cannot work, and a variable `WAKESWAP_*` that is not listed here, end the process with a message that "
        "names it. Secrets are never logged.",
    ]
    for group in settings.GROUPS:
        rows = [_setting(item, docs[group.__name__]) for item in fields(group)]
        heading, _, more = docs[group.__name__][""].partition(".")
        parts += [f"## {heading}", *filter(None, [more.strip()]), table(("Variable", "Default", "Meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def _setting(item: Field[Any], docs: dict[str, str]) -> tuple[str, ...]:
    secret = "**Secret.** " if item.metadata["secret"] else ""
    default = item.metadata["default"]
    shown = json.dumps(default) if isinstance(default, bool) else default
    return code(item.metadata["variable"]), code(shown), secret + docs[item.name]


# tenants


def tenant_schema() -> str:
    sources = ("shared/tenancy/tenant.py", "shared/tenancy/api_keys.py")
    return schema.text({name: docs for source in sources for name, docs in field_docs(ROOT / source).items()})


# events


_OPTIONS = """Every option has a default; an unknown one, or a value out of its range, is refused with `invalid_option`
and the option's name."""


_UNSUITED = """## Sources that do not suit

Warnings about a source stand in the result, or refuse it before the swap (`source_unsuited`, with the warnings in
`context`), as the option `unsuited_source` says. A learned swapper is not asked about the embedded one's.

Measured on 13 faces of installed packages: `refuse` refuses none of them, nor any in soft side light, 2 with a drawn
hard shadow on one half and 6 under drawn hard bars; `strict` refuses 7 as they are (5 laugh, 2 are in hard light, 1 is
turned away). Glasses are found by a dark bridge: light, thin and rimless frames mostly are not, on a source or a
target, and then fade into the face."""


def options() -> str:
    docs = field_docs(ROOT / "shared/events/choices.py")["Options"]
    rows = [(code(item.name), _default_option(item.default), docs[item.name]) for item in fields(choices.Options)]
    meanings = table(("Option", "Default", "Meaning"), rows)
    return "\n\n".join((MADE, "# Options of a job", _OPTIONS, meanings, _UNSUITED, _warnings())) + "\n"


def _warnings() -> str:
    rows = [
        (code(word), "embedded" if word in EMBEDDED else "any", "yes" if word in POOR else "no", text)
        for word, text in REASONS.items()
    ]
    return table(("Warning", "Swapper", "Refused by `refuse`", "Meaning"), rows)


def _default_option(value: object) -> str:
    """As a caller writes it; a text without its quotes."""
    return code(value if isinstance(value, str) else json.dumps(value))


def events() -> str:
    docs = field_docs(ROOT / "shared/events/payloads.py")
    examples = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "tests/events").glob("*.json"))]
    triggers = list(_triggers())
    rows = [
        (code(event["type"]), code(event["source"]), _link(_payload(event)), _listeners(event, triggers))
        for event in examples
    ]
    shapes = [_shape(kind, docs) for kind in _shapes()]
    return (
        "\n\n".join(
            (MADE, _INTRODUCTION, table(_EVENT_HEAD, rows), _PROOF, "## Payloads", _PAYLOADS, *shapes, _EXAMPLES)
        )
        + "\n"
    )


_EVENT_HEAD = ("Type", "Sent by", "Data", "Goes to")

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
| `media` | `image` |
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

One event of each type, in structured mode, lies in `tests/events`, signed with the tests' key; the tests
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


def _triggers() -> Iterator[dict[str, Any]]:
    for path in sorted((ROOT / "knative/base").glob("*.yaml")):
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


if __name__ == "__main__":
    sys.exit(main())
