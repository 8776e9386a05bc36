"""The Markdown that generated pages share."""

from __future__ import annotations

from collections.abc import Sequence

MADE = "<!-- Made by `python docs/generate.py`; change the code, not this page. -->"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(value: object) -> str:
    return f"`{value}`" if str(value) else ""
