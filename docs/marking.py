"""What generated pages share: the docstrings under fields, and the Markdown."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

Docs = dict[str, dict[str, str]]
"""By class and field."""
MADE = "<!-- Made by `python docs/generate.py`; change the code, not this page. -->"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(value: object) -> str:
    return f"`{value}`" if str(value) else ""


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
