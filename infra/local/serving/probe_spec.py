"""Probes as written in a manifest; httpGet and tcpSocket on the port that is served."""

from __future__ import annotations

from collections.abc import Mapping

from infra.local.fields import (
    NOT_IMPLEMENTED,
    ManifestError,
    as_mapping,
    below,
    integer_at,
    list_at,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
)
from infra.local.serving.model import Probe

_TIMING = frozenset({"initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold"})


def parse_probe(container: Mapping[str, object], key: str, path: str, port: int) -> Probe | None:
    """The probe under `key`, None when absent; `port` is the declared port, the only one that may be probed."""
    if container.get(key) is None:
        return None
    probe, where = mapping_at(container, key, path), below(path, key)
    refuse_unknown(probe, _TIMING | {"httpGet", "tcpSocket"}, where)
    if "httpGet" in probe and "tcpSocket" in probe:
        raise ManifestError(where, "must have httpGet or tcpSocket, not both")
    period = integer_at(probe, "periodSeconds", where, 0) or 0
    if key == "readinessProbe" and period == 0:
        _refuse_with_polling(probe, where)
    http = mapping_at(probe, "httpGet", where)
    refuse_unknown(http, {"path", "port", "scheme", "httpHeaders"}, f"{where}.httpGet")
    for kind in ("httpGet", "tcpSocket"):
        _accept_port(mapping_at(probe, kind, where), f"{where}.{kind}", port)
    if (text_at(http, "scheme", f"{where}.httpGet") or "HTTP") != "HTTP":
        raise ManifestError(f"{where}.httpGet.scheme", f"{http['scheme']!r} is {NOT_IMPLEMENTED}, only 'HTTP' is")
    return Probe(
        scheme="http" if "httpGet" in probe else "tcp",
        path=_path(http, f"{where}.httpGet"),
        headers=_headers(http, f"{where}.httpGet"),
        initial_delay=float(integer_at(probe, "initialDelaySeconds", where, 0) or 0),
        period=float(period or (0 if key == "readinessProbe" else 10)),
        timeout=float(integer_at(probe, "timeoutSeconds", where, 0) or 1),
        successes=integer_at(probe, "successThreshold", where, 1) or 1,
        failures=integer_at(probe, "failureThreshold", where, 0) or 3,
    )


def _refuse_with_polling(probe: Mapping[str, object], path: str) -> None:
    """Without a period Knative polls, and its webhook then refuses these two."""
    for key in ("failureThreshold", "timeoutSeconds"):
        if probe.get(key):
            raise ManifestError(below(path, key), "may not be set while periodSeconds is 0 or absent")


def _accept_port(action: Mapping[str, object], path: str, declared: int) -> None:
    port = action.get("port")
    if port not in (None, 0, declared, "", "http1"):
        raise ManifestError(below(path, "port"), f"must be the container's own port {declared}, not {port!r}")
    if path.endswith("tcpSocket"):
        refuse_unknown(action, {"port"}, path)


def _path(http: Mapping[str, object], path: str) -> str:
    value = text_at(http, "path", path) or "/"
    if not value.startswith("/"):
        raise ManifestError(below(path, "path"), f"{value!r} must begin with /")
    return value


def _headers(http: Mapping[str, object], path: str) -> tuple[tuple[str, str], ...]:
    headers = []
    for i, item in enumerate(list_at(http, "httpHeaders", path)):
        where = f"{path}.httpHeaders[{i}]"
        header = as_mapping(item, where)
        refuse_unknown(header, {"name", "value"}, where)
        headers.append((required_text(header, "name", where), text_at(header, "value", where) or ""))
    return tuple(headers)
