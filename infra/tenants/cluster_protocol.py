"""What the tenants' commands ask of a cluster: objects as plain JSON, no client and no connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from infra.tenants.objects import Key, Object


class Cluster(Protocol):
    """Errors: ClusterError, whose detail says what was tried and what the cluster said."""

    def get(self, api: str, key: Key) -> Object | None:
        """None: there is no such object, or no such kind."""
        ...

    def apply(self, item: Object, manager: str, *, dry_run: bool, force: bool) -> Object:
        """Server-side apply: afterwards the manager owns exactly the fields in `item`."""
        ...

    def create(self, item: Object, manager: str, *, dry_run: bool) -> Object:
        """Raises AlreadyThereError when there is one of this name."""
        ...

    def merge(self, api: str, key: Key, patch: Object, manager: str, *, dry_run: bool) -> Object: ...

    def delete(self, item: Object, *, dry_run: bool) -> None:
        """That very object, and not another that has taken its name. No error when it is gone."""
        ...

    def list(self, api: str, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        """All of a kind, everywhere or in a namespace; none where the cluster has no such kind."""
        ...
