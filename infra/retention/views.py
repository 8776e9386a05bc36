"""What retention says: as a table with a line per fact, or as JSON. No name that somebody gave a file is shown but by
`prove`, whose question is which objects are left.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from infra.retention.proving import Proof
from infra.retention.run import Report
from shared import records
from shared.errors import JsonValue


def show_reports(reports: Sequence[Report], form: str, *, dry: bool) -> None:
    if form == "json":
        print(json.dumps({"dry_run": dry, "tenants": [_facts(report) for report in reports]}, indent=2))
        return
    print("\t".join(("tenant", "what", "objects", "bytes")))
    for report in reports:
        for kind, count in sorted(report.objects.items()):
            print("\t".join((report.tenant, kind, str(count), str(report.bytes[kind]))))
        for fault in report.faults:
            print("\t".join((report.tenant, "waits", "-", fault)))
    print("nothing was deleted: a dry run" if dry else "done")


def _facts(report: Report) -> JsonValue:
    kinds: dict[str, JsonValue] = {
        kind: {"objects": count, "bytes": report.bytes[kind]} for kind, count in sorted(report.objects.items())
    }
    return {"tenant": report.tenant, "deleted": kinds, "waits": [*report.faults]}


def show_proof(proof: Proof, form: str) -> None:
    if form == "json":
        audit: list[JsonValue] = [records.write(entry) for entry in proof.known]
        left: list[JsonValue] = [records.write(one) for one in proof.left]
        facts: dict[str, JsonValue] = {"tenant": proof.tenant, "job": proof.job, "nothing_left": not proof.left}
        print(json.dumps(facts | {"proven": proof.holds, "left": left, "audit": audit}, indent=2))
        return
    for entry in proof.known:
        more = json.dumps({name: value for name, value in entry.facts.items() if name != "names"}, sort_keys=True)
        print("\t".join((entry.at, entry.what, entry.decision, entry.code or "-", entry.by, more)))
    for one in proof.left:
        print("\t".join(("left", one.kind, one.key)))
    print(_sentence(proof))


def _sentence(proof: Proof) -> str:
    if proof.left:
        return f"{len(proof.left)} objects are left."
    if not proof.known:
        return "The audit knows no such job, and nothing is stored under this name."
    return f"Nothing is left; {len(proof.deleted)} deletions are on record."
