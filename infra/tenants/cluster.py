"""A cluster, as the tenants' commands see it: objects as plain JSON, every error in the operator's words.

The only importer of `kubernetes`, which brings the credentials (KUBECONFIG, or a pod's own) and the connection. Which
paths there are the API server says itself, so that any kind of a component can be applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
import yaml
from kubernetes import client, config
from urllib3.exceptions import HTTPError

from infra.tenants.errors import ClusterError, NotThereError, refused
from infra.tenants.objects import Key, Object, api_of, group_of, key_of, rows, table, text

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"
HOME_CONFIG = Path("~/.kube/config")
SECONDS = (5.0, 60.0)
"""To connect; to answer. Admission webhooks may take up to 30 seconds."""
_PAGE = 500
_RETRIES = urllib3.Retry(
    total=4,
    connect=2,
    read=0,
    status_forcelist=[429, 503],
    allowed_methods=None,
    backoff_factor=0.3,
    raise_on_status=False,
)


@dataclass(frozen=True)
class Resource:
    """Where a kind is served."""

    path: str
    """As `/apis/eventing.knative.dev/v1`."""
    plural: str
    namespaced: bool

    def at(self, namespace: str = "", name: str = "") -> str:
        where = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        return f"{self.path}{where}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


@dataclass(frozen=True)
class _Request:
    action: str
    """Completes "Cannot ..."."""
    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: Object | None = None
    kind: str = ""
    """Content type of the body."""


class KubernetesCluster:
    def __init__(self, connection: client.ApiClient) -> None:
        self._connection = connection
        self._resources: dict[str, dict[str, Resource]] = {}

    @classmethod
    def connect(cls, kubeconfig: str = "", context: str = "") -> KubernetesCluster:
        """By these files (paths joined by colons), else by ~/.kube/config, else as the pod that this runs in.

        Raises ClusterError when none of them is there or usable.
        """
        settings = client.Configuration()
        settings.retries = _RETRIES
        try:
            if kubeconfig or context or HOME_CONFIG.expanduser().exists():
                config.load_kube_config(kubeconfig or str(HOME_CONFIG), context or None, settings)
            else:
                config.load_incluster_config(client_configuration=settings)
        except (config.ConfigException, OSError, ValueError, yaml.YAMLError, TypeError, AttributeError) as error:
            # the last two are what the client makes of a file whose parts are of the wrong kind
            raise ClusterError(f"No cluster: {error}") from error
        return cls(client.ApiClient(settings))

    def get(self, api: str, key: Key) -> Object | None:
        resource = self._find(api, key.kind)
        if resource is None:
            return None
        return self._find_answer(_Request(f"read {key}", "GET", resource.at(key.namespace, key.name)))

    def apply(self, item: Object, manager: str, *, dry_run: bool, force: bool) -> Object:
        key = key_of(item)
        path = self._resource(f"apply {key}", api_of(item), key.kind).at(key.namespace, key.name)
        query = [*_written_by(manager, dry_run), ("force", str(force).lower())]
        return self._ask(_Request(f"apply {key}", "PATCH", path, query, item, APPLY))

    def create(self, item: Object, manager: str, *, dry_run: bool) -> Object:
        key = key_of(item)
        path = self._resource(f"create {key}", api_of(item), key.kind).at(key.namespace)
        return self._ask(_Request(f"create {key}", "POST", path, _written_by(manager, dry_run), item, JSON))

    def merge(self, api: str, key: Key, patch: Object, manager: str, *, dry_run: bool) -> Object:
        path = self._resource(f"change {key}", api, key.kind).at(key.namespace, key.name)
        return self._ask(_Request(f"change {key}", "PATCH", path, _written_by(manager, dry_run), patch, MERGE))

    def delete(self, item: Object, *, dry_run: bool) -> None:
        key, uid = key_of(item), table(item.get("metadata")).get("uid")
        path = self._resource(f"delete {key}", api_of(item), key.kind).at(key.namespace, key.name)
        options: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        if dry_run:
            options["dryRun"] = ["All"]  # a body is read instead of the query, where it would be overlooked
        self._find_answer(_Request(f"delete {key}", "DELETE", path, (), options, JSON))

    def list(self, api: str, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        resource = self._find(api, kind)
        if resource is None:
            return []
        selector = ",".join(f"{name}={value}" for name, value in (labels or {}).items())
        action = f"list {kind}s in {namespace or 'the cluster'}"
        found: list[Object] = []
        proceed = ""
        while True:
            query = [("limit", str(_PAGE)), ("labelSelector", selector), ("continue", proceed)]
            given = [(name, value) for name, value in query if value]
            page = self._ask(_Request(action, "GET", resource.at(namespace), given))
            found += [{"apiVersion": api, "kind": kind, **item} for item in rows(page.get("items"))]
            proceed = text(table(page.get("metadata")).get("continue"))
            if not proceed:
                return found

    def _resource(self, action: str, api: str, kind: str) -> Resource:
        found = self._find(api, kind)
        if found is None:
            raise ClusterError(f"Cannot {action}: the cluster has no {kind} of {api}. {_brought_by(group_of(api))}")
        return found

    def _find(self, api: str, kind: str) -> Resource | None:
        if api not in self._resources:
            path = f"/apis/{api}" if "/" in api else f"/api/{api}"
            answer = self._find_answer(_Request(f"ask for the kinds of {api}", "GET", path)) or {}
            self._resources[api] = {
                text(row.get("kind")): Resource(path, text(row.get("name")), bool(row.get("namespaced")))
                for row in rows(answer.get("resources"))
                if "/" not in text(row.get("name"))
            }
        return self._resources[api].get(kind)

    def _find_answer(self, request: _Request) -> Object | None:
        """None where the server says 404."""
        try:
            return self._ask(request)
        except NotThereError:
            return None

    def _ask(self, request: _Request) -> Object:
        try:
            return table(json.loads(self._send(request)))
        except client.ApiException as error:
            if not error.status:  # a certificate that does not hold
                raise ClusterError(f"Cannot {request.action}: {error.reason}") from error
            raise refused(request.action, error.status, error.body) from error
        except (HTTPError, OSError) as error:
            raise ClusterError(f"Cannot {request.action}: the cluster does not answer ({error}).") from error
        except ValueError as error:
            raise ClusterError(f"Cannot {request.action}: what answers is no Kubernetes API server.") from error

    def _send(self, request: _Request) -> bytes:
        headers = {"Accept": JSON, **({"Content-Type": request.kind} if request.kind else {})}
        answer: Any = self._connection.call_api(
            request.path,
            request.method,
            query_params=list(request.query),
            header_params=headers,
            body=request.body,
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
            _preload_content=False,
            _request_timeout=SECONDS,
        )
        data: bytes = answer.data
        return data


def _written_by(manager: str, dry_run: bool) -> list[tuple[str, str]]:
    """Strict: a field that the server does not know is an error, not dropped."""
    dry = [("dryRun", "All")] if dry_run else []
    return [("fieldManager", manager), ("fieldValidation", "Strict"), *dry]


def _brought_by(group: str) -> str:
    if group.endswith("knative.dev"):
        return "Is Knative Serving and Eventing installed?"
    return "Is what brings it installed?"
