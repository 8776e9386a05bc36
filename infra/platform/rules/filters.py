"""Which events a Trigger hears: filters, and stages that would hear themselves (knative.md sections 2.1 and 2.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.local.eventing.filters import parse_filter
from infra.local.fields import ManifestError
from infra.platform.rules.delivery import subscriber, wakes
from infra.platform.rules.registry import rule
from infra.platform.stack import Doc, Stack, listing, mapping, name_of, spec_of

SILENT = frozenset({"notify", "meter"})
"""Stages whose answers carry no event."""
_NAME = re.compile(r"[a-z][a-z0-9]*")
_DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not", "cesql")


@rule("filter-missing", "A Trigger without a filter hears every event, its own Service's answers too.")
def filter_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if not spec_of(trigger).get("filters") and not mapping(spec_of(trigger).get("filter")).get("attributes"):
            yield f"{name_of(trigger)}: spec.filters", "is missing"


@rule("filter-ignored", "Where there are filters, filter is ignored without a word.")
def filter_ignored(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if spec_of(trigger).get("filters") and spec_of(trigger).get("filter"):
            yield f"{name_of(trigger)}: spec.filter", "is ignored beside spec.filters"


@rule("filter-name", "No event has an attribute of this name: CloudEvents knows small letters and digits only.")
def filter_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        older = mapping(mapping(spec_of(trigger).get("filter")).get("attributes"))
        for name in [*older, *_names(listing(spec_of(trigger).get("filters")))]:
            if not _NAME.fullmatch(name):
                yield f"{name_of(trigger)}: spec.filters", f"{name!r} is no name of an attribute"


@rule("filter-value", "No event has an attribute without a value, nor one that is no text: the entry matches nothing.")
def filter_value(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        for where, entry in _entries(listing(spec_of(trigger).get("filters")), "spec.filters"):
            for dialect in ("exact", "prefix", "suffix"):
                values = [*mapping(entry.get(dialect)).values()]
                if dialect in entry and not (values and all(isinstance(one, str) and one for one in values)):
                    yield f"{name_of(trigger)}: {where}.{dialect}", "must name attributes and texts that are not empty"


@rule("filter-opaque", "Nobody here can say what it lets through: a stage's own answers, and so a loop, perhaps.")
def filter_opaque(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        for where, entry in _entries(listing(spec_of(trigger).get("filters")), "spec.filters"):
            if "cesql" in entry:
                yield f"{name_of(trigger)}: {where}.cesql", "must be written as exact, prefix, suffix, any, all or not"


@rule("filter-mixed", "One entry has one dialect; the webhook refuses a mix, which would look like `and`.")
def filter_mixed(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        for where, entry in _entries(listing(spec_of(trigger).get("filters")), "spec.filters"):
            if len(entry) != 1 or not set(entry) <= set(_DIALECTS):
                yield f"{name_of(trigger)}: {where}", f"must have one of {', '.join(_DIALECTS)}"


@rule("reply-loop", "A stage that hears what it answers with works on its own answers, 255 times over.")
def reply_loop(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        stage = _stage(trigger)
        if stage in SILENT or wakes(trigger):
            continue
        for outcome in ("completed", "rejected", "failed"):
            said = {"type": f"dev.wakeswap.{stage}.{outcome}.v1", "source": f"/wakeswap/{stage}"}
            if _hears(trigger, said):
                yield f"{name_of(trigger)}: spec.filters", f"let {said['type']} through, which {stage} itself says"


def _stage(trigger: Doc) -> str:
    """Of a process of several stages the path names the one that is meant."""
    uri = str(mapping(spec_of(trigger).get("subscriber")).get("uri") or "")
    return (uri.strip("/") or str(subscriber(trigger)).removesuffix("-batch")).replace("-", "_")


def _hears(trigger: Doc, attributes: Mapping[str, str]) -> bool:
    """False for a filter that cannot be read: another rule says so."""
    try:
        return parse_filter(spec_of(trigger), "spec").matches(attributes)
    except ManifestError:
        return False


def _entries(entries: list[Any], path: str) -> Iterator[tuple[str, Doc]]:
    """Every filter with its place, those inside others too."""
    for index, entry in enumerate(entries):
        where = f"{path}[{index}]"
        yield where, mapping(entry)
        for dialect, value in mapping(entry).items():
            if dialect in ("any", "all", "not"):
                yield from _entries(value if isinstance(value, list) else [value], f"{where}.{dialect}")


def _names(entries: list[Any]) -> Iterator[str]:
    for _, entry in _entries(entries, ""):
        for dialect, value in entry.items():
            if dialect in ("exact", "prefix", "suffix"):
                yield from map(str, mapping(value))
