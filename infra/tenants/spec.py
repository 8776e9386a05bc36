"""What the cluster's objects of a tenant are made from. Pure; knows the tenant and nothing of Kubernetes' API."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.errors import ConfigError
from shared.tenancy.folder import SUFFIX
from shared.tenancy.tenant import NAME, Tenant

DIRECTORY = "wakeswap-tenants"
"""The ConfigMap that every stage mounts as its folder of tenants."""
PREFIX = "tenant-"
"""Before a tenant's name: its namespace. With a name's 40 characters it stays below a DNS label's 63."""


_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def namespace(text: str) -> str:
    """`text` when a Namespace can have this name. Raises ConfigError."""
    if not _NAMESPACE.fullmatch(text):
        raise ConfigError("A namespace is a DNS label of at most 63 characters.", context={"field": "--namespace"})
    return text


@dataclass(frozen=True)
class Place:
    """Where a tenant is on a cluster; known from its name alone."""

    name: str
    installation: str = "wakeswap"
    """Namespace of the shared stages."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigError(
                "A tenant name is a DNS label of at most 40 characters.", context={"field": self.name[:64]}
            )
        namespace(self.installation)
        if PREFIX + self.name == self.installation:
            raise ConfigError("The tenant's namespace would be the installation's.", context={"field": self.name})

    @property
    def namespace(self) -> str:
        """Its own, where it has one."""
        return PREFIX + self.name

    @property
    def entry(self) -> str:
        """Its key in the directory's ConfigMap."""
        return self.name + SUFFIX

    @property
    def manager(self) -> str:
        """Field manager. One for each tenant, so that each owns its own key of the shared ConfigMap and no other."""
        return f"wakeswap-tenant-{self.name}"

    @property
    def owner(self) -> str:
        return f"{self.installation}/{self.name}"

    @property
    def objects(self) -> str:
        """Its part of the bucket, behind the prefix of the installation's own store."""
        return f"dedicated/{self.name}"


@dataclass(frozen=True)
class TenantSpec:
    tenant: Tenant
    text: str
    """Its file, as people wrote it."""
    place: Place

    @property
    def is_dedicated(self) -> bool:
        return self.tenant.policy.isolation == "dedicated"
