"""Which models a tenant may ask for, by what their licences say about commercial use. Pure decisions."""

from __future__ import annotations

from collections.abc import Mapping

ALLOWED: Mapping[str, frozenset[str]] = {
    "commercial-only": frozenset({"yes"}),
    "research": frozenset({"yes", "no"}),
    "any": frozenset({"yes", "no", "unknown"}),
}
"""By policy: the answers to "may it be used commercially?" that are good enough. Unknown terms may forbid anything."""


def allows(policy: str, commercial: str) -> bool:
    """Whether a tenant with this policy may use a model whose commercial use is `yes`, `no` or `unknown`."""
    return commercial in ALLOWED[policy]
