"""Who asks, and for what their key or token is good. Pure; knows tenants and the edge's errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.refusals import InsufficientScopeError

if TYPE_CHECKING:
    from shared.tenancy.tenant import Tenant

READ, WRITE = "jobs:read", "jobs:write"
SCOPES = (READ, WRITE)
"""What a key or token may be good for: looking at jobs and results; starting and cancelling jobs."""


@dataclass(frozen=True)
class Caller:
    tenant: Tenant
    scopes: frozenset[str] = field(default=frozenset(SCOPES))
    key_id: str = ""
    """Names the key or token in logs, limits and audit records; nobody can call with it."""

    def need(self, scope: str) -> None:
        """Raises InsufficientScopeError."""
        if scope not in self.scopes:
            raise InsufficientScopeError(f"This needs the scope {scope}.", context={"scope": scope})
