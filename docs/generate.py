"""Write what is made from the code: docs/events.md, models.md, options.md, settings.md and tenant.schema.json.

`python docs/generate.py` writes them; with `--check` it writes nothing and fails when one is stale. It reads
docstrings under fields, the example events in tests/events, the Triggers in knative/base and the catalogue.
"""

from __future__ import annotations

import json
import sys
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import event_page  # noqa: E402 - after the path is set
import metric_page  # noqa: E402
import model_page  # noqa: E402
from marking import MADE, code, field_docs, table  # noqa: E402

from shared import settings  # noqa: E402
from shared.events import choices  # noqa: E402
from shared.tenancy import schema  # noqa: E402
from shared.vision.unsuited import EMBEDDED, POOR, REASONS  # noqa: E402


def main() -> int:
    pages = {
        "events.md": event_page.page(ROOT),
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


# settings


def settings_page() -> str:
    sources = ("settings", "edge_settings", "trace_settings", "video_settings")
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


if __name__ == "__main__":
    sys.exit(main())
