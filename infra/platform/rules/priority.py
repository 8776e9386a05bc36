"""Interactive and batch jobs on Services of their own: of two Triggers each event is heard by one."""

from __future__ import annotations

from collections.abc import Iterator

from infra.platform.rules.registry import rule
from infra.platform.stack import Doc, Stack, listing, name_of, spec_of

BATCH = {"exact": {"priority": "batch"}}
OTHERS = {"not": BATCH}
"""Not `exact: interactive`: an event that says nothing of priority must be heard by somebody too."""


@rule("priority-split", "A job that both hear is worked on twice, and one that neither hears never ends.")
def priority_split(stack: Stack) -> Iterator[tuple[str, str]]:
    triggers = {name_of(trigger): trigger for trigger in stack.triggers}
    for name, trigger in triggers.items():
        beside = triggers.get(f"{name}-batch")
        if beside is None:
            continue
        rest = [entry for entry in _filters(trigger) if entry != OTHERS]
        for each, said in ((trigger, OTHERS), (beside, BATCH)):
            if said not in _filters(each) or [entry for entry in _filters(each) if entry != said] != rest:
                yield f"{name_of(each)}: spec.filters", f"must be those of {name}, and {said}"


def _filters(trigger: Doc) -> list[Doc]:
    return listing(spec_of(trigger).get("filters"))
