"""What a cluster refuses, in the operator's words. Knows the form of Kubernetes' Status answers, not the client."""

from __future__ import annotations

import json

from infra.tenants.objects import Object, rows, table, text
from shared.errors import WakeswapError


class ClusterError(WakeswapError):
    """The cluster, or what stands on it, does not let the command do its work."""

    code = "cluster_error"
    title = "The cluster refuses"


class NotThereError(ClusterError):
    code = "cluster_not_there"


class AlreadyThereError(ClusterError):
    """Somebody has made the object meanwhile."""

    code = "cluster_already_there"


def status_of(body: bytes | str | None) -> Object:
    """The Status object of an answer; an empty one for any other body, such as a proxy's page."""
    try:
        return table(json.loads(body or b"{}"))
    except ValueError:
        return {}


def refused(action: str, code: int, body: bytes | str | None) -> ClusterError:
    """The error for an answer of this HTTP status. `action` completes "Cannot ...", as `apply Broker x/default`."""
    status = status_of(body)
    said = text(status.get("message")) or f"status {code}"
    if text(status.get("reason")) == "AlreadyExists":
        return AlreadyThereError(f"Cannot {action}: it exists already.")
    kind = NotThereError if code == 404 else ClusterError
    return kind(f"Cannot {action}: {_reason(code, status, said)}")


def _reason(code: int, status: Object, said: str) -> str:
    causes = rows(table(status.get("details")).get("causes"))
    if code == 401:
        return "the cluster does not know these credentials."
    if code == 403:
        return f"not allowed. {said}"
    if code == 409 and any(cause.get("reason") == "FieldManagerConflict" for cause in causes):
        return f"others have set the same fields, and --force takes them over. {_fields(causes)}"
    if code in (413, 422) or (code == 400 and causes):
        return f"not valid. {_fields(causes) or said}"
    if code in (429, 500, 502, 503, 504):
        return f"the cluster is busy or failing; the command can be repeated. {said}"
    return said


def _fields(causes: list[Object]) -> str:
    return "; ".join(f"{text(cause.get('field'))}: {text(cause.get('message'))}" for cause in causes)
