"""A small API server on 127.0.0.1 for the real Kubernetes client: the paths, answers and errors that the tenants'
commands meet, and server-side apply (`field_ownership`). Its answers were compared with those of kube-apiserver.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from tests.servers.field_ownership import ConflictError, Stored, merged

CORE = ("Namespace", "ConfigMap", "Secret", "ServiceAccount", "ResourceQuota", "LimitRange", "PersistentVolumeClaim")
KINDS = {
    "v1": CORE,
    "networking.k8s.io/v1": ("NetworkPolicy",),
    "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding"),
    "apps/v1": ("DaemonSet",),
    "serving.knative.dev/v1": ("Service",),
    "eventing.knative.dev/v1": ("Broker", "Trigger"),
    "sources.knative.dev/v1": ("PingSource", "SinkBinding"),
    "sources.knative.dev/v1alpha1": ("IntegrationSource",),
}
ADMIN, READER = "admin-token", "reader-token"
Where = tuple[str, str, str]
"""(group, plural, namespace)."""
Deny = Callable[[Mapping[str, Any]], str]
"""What an admission webhook says against an object; empty: nothing."""


class RefusedError(Exception):
    def __init__(self, code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.status = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code, "details": {"causes": causes or []},
        }  # fmt: skip
        self.code = code


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    kind: str
    body: dict[str, Any]
    token: str

    @property
    def dry_run(self) -> bool:
        """The options of a deletion are its body, or its query where there is no body: never both."""
        if self.method == "DELETE" and self.body:
            return self.body.get("dryRun") == ["All"]
        return self.query.get("dryRun") == "All"


@dataclass
class KubernetesApi:
    """`with KubernetesApi() as api:`, then `api.kubeconfig(folder)`."""

    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: KINDS)
    deny: Deny = lambda _: ""
    objects: dict[Where, dict[str, Stored]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """(method, path) of all that were answered."""
    fail_after: int | None = None
    """Requests until the server answers none any more."""
    version: int = 0

    def __enter__(self) -> KubernetesApi:
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, folder: Path, token: str = ADMIN) -> Path:
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{self._server.server_port}"}}],
            "users": [{"name": "fake", "user": {"token": token}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        }  # fmt: skip
        path = folder / f"kubeconfig-{token}.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    def answer(self, request: Request) -> dict[str, Any] | None:
        """None: the connection is cut. Raises RefusedError."""
        with self._lock:
            if self.fail_after is not None:
                if self.fail_after == 0:
                    return None
                self.fail_after -= 1
            self.requests.append((request.method, request.path))
            return self._answer(request)

    def _answer(self, request: Request) -> dict[str, Any]:
        if request.token not in (ADMIN, READER):
            raise RefusedError(401, "Unauthorized", "Unauthorized")
        parts = [unquote(part) for part in request.path.strip("/").split("/")]
        api, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        if api not in self.kinds:
            raise RefusedError(404, "NotFound", "the server could not find the requested resource")
        if not rest:
            return self._discovery(api)
        namespace, rest = (rest[1], rest[2:]) if rest[0] == "namespaces" and len(rest) > 2 else ("", rest)
        plural, name = rest[0], rest[1] if len(rest) > 1 else ""
        kind = next((kind for kind in self.kinds[api] if _plural(kind) == plural), "")
        if not kind:
            raise RefusedError(404, "NotFound", "the server could not find the requested resource")
        if request.token == READER and request.method != "GET":
            verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}[request.method]
            raise RefusedError(
                403, "Forbidden", f'{plural} "{name}" is forbidden: User "reader" cannot {verb} resource "{plural}"'
            )
        return _Place(self, request, api, kind, namespace, name).answer()

    def _discovery(self, api: str) -> dict[str, Any]:
        rows = [{"name": _plural(kind), "kind": kind, "namespaced": kind != "Namespace"} for kind in self.kinds[api]]
        rows += [{**row, "name": f"{row['name']}/status"} for row in rows]
        return {"kind": "APIResourceList", "groupVersion": api, "resources": rows}


@dataclass
class _Place:
    """One request for one kind of objects."""

    api: KubernetesApi
    request: Request
    version: str
    kind: str
    namespace: str
    name: str

    @property
    def where(self) -> Where:
        return self.version.rpartition("/")[0], _plural(self.kind), self.namespace

    @property
    def here(self) -> dict[str, Stored]:
        return self.api.objects.setdefault(self.where, {})

    def answer(self) -> dict[str, Any]:
        method = self.request.method
        if method == "GET":
            return self._found().value if self.name else self._list()
        return {"POST": self._create, "PATCH": self._patch, "DELETE": self._delete}[method]()

    def _found(self) -> Stored:
        if self.name not in self.here:
            raise RefusedError(404, "NotFound", f'{_plural(self.kind)} "{self.name}" not found')
        return self.here[self.name]

    def _list(self) -> dict[str, Any]:
        wanted = dict(pair.split("=") for pair in self.request.query.get("labelSelector", "").split(",") if pair)
        group, plural, _ = self.where
        places = (
            [self.here]
            if self.namespace
            else [found for where, found in self.api.objects.items() if where[:2] == (group, plural)]
        )
        items = [stored.value for place in places for _, stored in sorted(place.items())]
        items = [item for item in items if wanted.items() <= (item["metadata"].get("labels") or {}).items()]
        start, limit = int(self.request.query.get("continue", 0)), int(self.request.query.get("limit", 500))
        more = str(start + limit) if start + limit < len(items) else ""
        page = [{name: value for name, value in item.items() if name not in ("kind", "apiVersion")} for item in items]
        return {"kind": f"{self.kind}List", "metadata": {"continue": more}, "items": page[start : start + limit]}

    def _create(self) -> dict[str, Any]:
        self.name = self.request.body["metadata"]["name"]
        if self.name in self.here:
            raise RefusedError(409, "AlreadyExists", f'{_plural(self.kind)} "{self.name}" already exists')
        new = Stored({})
        new.update(self.request.body, self.request.query["fieldManager"])
        return self._keep(new, None)

    def _patch(self) -> dict[str, Any]:
        manager, live = self.request.query["fieldManager"], self.here.get(self.name)
        if self.request.kind == "application/merge-patch+json":
            new = self._found().copy()
            new.update(merged(new.value, self.request.body), manager)
            return self._keep(new, live)
        new = (
            live.copy()
            if live
            else Stored({"apiVersion": self.version, "kind": self.kind, "metadata": {"name": self.name}})
        )
        if self.namespace:
            new.value["metadata"]["namespace"] = self.namespace
        try:
            new.apply(self.request.body, manager, force=self.request.query.get("force") == "true")
        except ConflictError as conflict:
            causes = [
                {"reason": "FieldManagerConflict", "field": "".join(f".{name}" for name in path),
                 "message": f'conflict with "{owner}"'} for path, owner in conflict.causes
            ]  # fmt: skip
            raise RefusedError(409, "Conflict", f"Apply failed with {len(causes)} conflict", causes) from conflict
        return self._keep(new, live)

    def _keep(self, new: Stored, live: Stored | None) -> dict[str, Any]:
        if said := self.api.deny(new.value):
            raise RefusedError(400, "BadRequest", f'admission webhook "validation.webhook" denied the request: {said}')
        if self.namespace and self.namespace not in self.api.objects.get(("", "namespaces", ""), {}):
            raise RefusedError(404, "NotFound", f'namespaces "{self.namespace}" not found')
        if live is not None and (live.value, live.owners) == (new.value, new.owners):
            return live.value
        metadata = new.value["metadata"]
        if live is None:
            metadata |= {"uid": uuid.uuid4().hex, "creationTimestamp": "2030-01-01T00:00:00Z", "generation": 0}
            if self.version.startswith("serving."):  # as Knative's defaulting webhook
                metadata.setdefault("annotations", {})["serving.knative.dev/creator"] = "admin"
        if live is None or live.value.get("spec") != new.value.get("spec"):
            metadata["generation"] += 1
        metadata["managedFields"] = [{"manager": name, "operation": how} for name, how in sorted(new.owners)]
        if not self.request.dry_run:
            self.api.version += 1
            metadata["resourceVersion"] = str(self.api.version)
            self.here[self.name] = new
        return new.value

    def _delete(self) -> dict[str, Any]:
        live = self._found().value
        wanted = self.request.body.get("preconditions", {}).get("uid", live["metadata"]["uid"])
        if wanted != live["metadata"]["uid"]:
            raise RefusedError(409, "Conflict", "the UID in the precondition does not match the UID in record")
        if not self.request.dry_run:
            del self.here[self.name]
            if self.kind == "Namespace":
                for where in [where for where in self.api.objects if where[2] == self.name]:
                    del self.api.objects[where]
        return {"kind": "Status", "status": "Success"}


def _plural(kind: str) -> str:
    lower = kind.lower()
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def _handler(api: KubernetesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet an answer: two would wait for each other (Nagle)

        def _serve(self) -> None:
            url = urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            kind = self.headers.get("Content-Type") or ""
            request = Request(
                self.command, url.path, dict(parse_qsl(url.query)), kind, json.loads(data or b"{}"), token
            )
            try:
                code, answer = 200, api.answer(request)
            except RefusedError as refusal:
                code, answer = refusal.code, refusal.status
            if answer is None:
                self.close_connection = True
                return
            body = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
