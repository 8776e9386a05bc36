"""HTTP requests made from openapi.json by schemathesis, right and wrong ones, and requests with damage in them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes, urlsplit

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode

from tests.fuzz.damage import damage
from tests.fuzz.sent import Answer, Tally
from tests.fuzz.servers import KEY, TOKEN, Server
from tests.unit.jobs.world import picture

_DOCUMENT = Path(__file__).parents[2] / "shared/serving/openapi.json"
_BASE = "http://intake"
_NEVER_SENT = ("X-Schemathesis-TestCaseId", "User-Agent", "Content-Length", "Transfer-Encoding", "Connection", "Host")


def from_document(server: Server, tally: Tally, count: int, number: int) -> None:
    """`count` requests, half of them as generated, each followed by itself with damage; `number` repeats them."""
    chance = random.Random(number)

    def send(case: Case[Any]) -> None:
        method, path, headers, body = _prepared(case)
        if chance.random() < 0.8:
            headers["Authorization"] = f"Bearer {TOKEN if path.startswith('/events') else KEY}"
        if headers.get("Prefer"):
            headers["Prefer"] = headers["Prefer"].replace("wait", "wait_")  # nobody ends these jobs
        path = _of_a_job(path, server, chance)
        for _ in range(2):
            what = f"round {number}: {method} {path[:200]} {str(headers)[:300]} {body[:300]!r}"
            _send(server, tally, what, method, path, headers, body)
            path, body = _damaged_path(path, chance), damage(body, chance) if body else body

    quietly = settings(
        max_examples=count // 2,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seed(number)(quietly(given(_cases())(send)))()


def _send(
    server: Server, tally: Tally, what: str, method: str, path: str, headers: dict[str, str], body: bytes
) -> None:
    answer = server.send(method, path, headers, body)
    if answer.status == 202:
        server.jobs.append(str(json.loads(answer.body)["id"]))
    tally.note(f"{method} {_route(path)}", what, answer, bodyless=method == "HEAD")


def _of_a_job(path: str, server: Server, chance: random.Random) -> str:
    """Now and then the path of a job that there is."""
    head, _, rest = path.removeprefix("/v1/jobs/").partition("/")
    if not path.startswith("/v1/jobs/") or not head or not server.jobs or chance.random() < 0.6:
        return path
    return f"/v1/jobs/{chance.choice(server.jobs)}" + (f"/{rest}" if rest else "")


def _damaged_path(path: str, chance: random.Random) -> str:
    """Still a path that a client can send."""
    if chance.random() < 0.5:
        return path
    return "/" + quote_from_bytes(damage(path[1:].encode(), chance), safe="/%?=&.;:@+-_~")[:6000]


def _route(path: str) -> str:
    parts = urlsplit(path).path.split("/")
    known = "/".join(parts[:3]) in ("/v1/jobs", "/events/s3", "/openapi.json")
    return "/".join([*parts[:3], *(["{id}"] if len(parts) > 3 else [])]) if known else "(another path)"


@cache
def _cases() -> st.SearchStrategy[Case[Any]]:
    found = [each.ok() for each in schemathesis.openapi.from_path(_DOCUMENT).get_all_operations()]  # type: ignore[union-attr]
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    return st.one_of([operation.as_strategy(generation_mode=mode) for operation in found for mode in modes])


def _prepared(case: Case[Any]) -> tuple[str, str, dict[str, str], bytes]:
    """Method, path with query, headers and body, as the transport would send them."""
    given_ = case.as_transport_kwargs(base_url=_BASE)
    given_.pop("timeout", None)
    request = requests.Request(**given_).prepare()
    body: Any = request.body or b""
    headers = {name: str(value) for name, value in request.headers.items() if name not in _NEVER_SENT}
    content = body.encode() if isinstance(body, str) else bytes(body)
    return str(request.method), str(request.path_url), headers, content


def damaged(server: Server, tally: Tally, count: int, number: int) -> None:
    """`count` requests in whose bytes something is wrong, on connections of their own."""
    chance = random.Random(number)
    for _ in range(count):
        sent = damage(chance.choice(_SAMPLES)(), chance)
        answer: Answer = server.send_bytes(sent)
        tally.note("damaged bytes", f"round {number}: {sent[:600]!r}", answer, raw=True, bodyless=b"HEAD " in sent[:9])


def pictures(server: Server, tally: Tally, count: int, number: int) -> None:
    """`count` uploads of a picture whose bytes are damaged, and options that are."""
    chance = random.Random(number)
    for _ in range(count):
        kind = chance.choice(("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "AVIF"))
        data, options = picture(3, kind=kind), b'{"format": "png", "quality": 80, "faces": "many"}'
        data = damage(data, chance) if chance.random() < 0.7 else data
        options = damage(options, chance) if chance.random() < 0.5 else options
        body, boundary = _form({"source": data, "target": picture(4), "options": options})
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": f"multipart/form-data; boundary={boundary}"}
        _send(server, tally, f"round {number}: {kind} {data[:200]!r}", "POST", "/v1/jobs", headers, body)


def _form(parts: dict[str, bytes]) -> tuple[bytes, str]:
    body = b""
    for name, data in parts.items():
        file = "" if name == "options" else f'; filename="{name}"'
        body += f'--b0undary\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"
    return body + b"--b0undary--\r\n", "b0undary"


def _http(line: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    fields = {"Host": "x", "Authorization": f"Bearer {KEY}", **headers}
    if body:
        fields["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{line} HTTP/1.1\r\n{head}\r\n".encode() + body


def _upload() -> bytes:
    body, boundary = _form({"source": picture(3), "target": picture(4), "options": b"{}"})
    return _http("POST /v1/jobs", {"Content-Type": f"multipart/form-data; boundary={boundary}"}, body)


def _named() -> bytes:
    body = json.dumps({"source": "a.jpg", "target": "b.jpg", "options": {"quality": 5}}).encode()
    return _http("POST /v1/jobs", {"Content-Type": "application/json", "Idempotency-Key": "k"}, body)


def _chunked() -> bytes:
    head = _http("POST /v1/jobs", {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    return head + b'7\r\n{"sourc\r\n5\r\ne": 1\r\n1\r\n}\r\n0\r\n\r\n'


def _event() -> bytes:
    fields = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/x", "ce-type": "dev.knative.sources.ping"}
    return _http("POST /", {**fields, "Content-Type": "application/json"}, b'{"tenant": "demo", "prefix": "x/"}')


_SAMPLES: list[Callable[[], bytes]] = [
    lambda: _http("GET /v1/jobs?limit=3&cursor=x", {}),
    lambda: _http("GET /v1/jobs/5f0c9c55-5d6a-5a1c-9e21-6f1b8d0e52a7/result", {"Range": "bytes=0-1"}),
    lambda: _http("DELETE /v1/jobs/5f0c9c55-5d6a-5a1c-9e21-6f1b8d0e52a7", {}),
    lambda: _http("GET /health/readiness", {}),
    lambda: _http("POST /wake", {}, b"{}"),
    _upload,
    _named,
    _chunked,
    _event,
]
