"""Every rule catches its seed, for the reason named, and no other rule does: a rule that sees nothing is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.platform.check import MODULES, RULES, findings
from infra.platform.configs import Configs
from infra.platform.rules.registry import Finding
from infra.platform.stack import Stack
from tests.contract.components import of_kind, rendered
from tests.contract.schemas import schemas
from tests.contract.seeding import DATA, Doc, Seed, good, rule_of, seeds


def caught(documents: list[Doc]) -> list[Finding]:
    return findings(Stack(documents, Configs.of(documents), schemas()))


def test_a_stack_without_a_fault_has_none() -> None:
    assert not caught(good())


def test_every_rule_has_a_seed_and_every_seed_a_rule() -> None:
    assert {rule_of(file) for file in seeds()} == set(RULES)
    assert len(RULES) == sum(module_rules(module.__file__) for module in MODULES), "no name is used twice"


def module_rules(file: str | None) -> int:
    assert file
    return Path(file).read_text().count("\n@rule(")


@pytest.mark.parametrize("file", seeds(), ids=lambda file: file.stem)
def test_a_seed_is_caught_by_its_rule_and_by_no_other(file: Path) -> None:
    seed = Seed.read(file)
    found = caught(seed.documents)
    assert {each.rule for each in found} == {seed.rule}, "\n".join(map(str, found))
    assert seed.where in {each.where for each in found}, "\n".join(map(str, found))


def test_s3_10_a_source_that_deletes_uploads_or_sends_their_bytes_is_refused() -> None:
    """And production has none: its uploads come from the queue, which carries keys."""
    for name in ("source-deletes", "source-body"):
        found = caught(Seed.read(DATA / f"seeds/{name}.yaml").documents)
        assert [each.rule for each in found] == [name]
    (source,) = of_kind(rendered("production"), "IntegrationSource").values()
    assert set(source["spec"]["aws"]) == {"sqs", "auth"}
