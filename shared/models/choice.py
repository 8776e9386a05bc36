"""The registry as one tenant's job sees it: roles are the operator's choice, any other name is the job's own.

What a job asks for must exist in the role it is asked for, and the tenant's licence policy must allow it, with
everything it uses. Refused here, before a byte is loaded. Knows the catalogue and the pure decision in tenancy.
"""

from __future__ import annotations

from typing import TypeVar

from shared.context import Models
from shared.models.catalog import Catalog
from shared.rejections import ModelForbiddenError, UnknownModelError
from shared.tenancy.licences import allows
from shared.tenancy.tenant import Policy

A = TypeVar("A")


class TenantModels:
    """The `shared.context.Models` of one event."""

    def __init__(self, registry: Models, catalog: Catalog, policy: Policy) -> None:
        self._registry = registry
        self._catalog = catalog
        self._policy = policy

    def get(self, name: str, protocol: type[A]) -> A:
        """As the registry does; UnknownModelError and ModelForbiddenError for a name that no job may ask for.

        A role is called like its protocol, in lower case.
        """
        if name not in self._catalog.roles:
            self.permit(name, protocol.__name__.lower())
        return self._registry.get(name, protocol)

    def chosen(self, role: str) -> str:
        """As the registry does. Asked for by that name, the model is held against the tenant's policy."""
        return self._registry.chosen(role)

    def digest(self, name: str) -> str:
        """As the registry does."""
        return self._registry.digest(name)

    def embedded(self, name: str) -> bool:
        """As the registry does."""
        return self._registry.embedded(name)

    def provider(self, name: str) -> str:
        """As the registry does."""
        return self._registry.provider(name)

    def warm(self, *names: str) -> None:
        """As the registry does."""
        self._registry.warm(*names)

    def permit(self, name: str, role: str) -> None:
        """Raises UnknownModelError, ModelForbiddenError."""
        spec = self._catalog.models.get(name)
        if spec is None or spec.role != role:
            known = sorted(model.name for model in self._catalog.models.values() if model.role == role)
            raise UnknownModelError(
                f"There is no {role} that is called {name!r}; there are {', '.join(known)}.", context={"model": name}
            )
        for part in self._catalog.closure(name):
            if not allows(self._policy.licences, part.commercial):
                through = "" if part is spec else f" needs {part.name!r}, which"
                raise ModelForbiddenError(
                    f"{name!r}{through} has the licence: {part.licence}. "
                    f"The tenant's policy is {self._policy.licences}.",
                    context={"model": name, "licence": part.licence, "policy": self._policy.licences},
                )
