"""Ways to write down a name so that a careless reader takes it for another: the columns of the matrix."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote

from tests.crossing.world import ACME, ACME_KEY, AUDIENCE, GLOBEX_KEY, ISSUER, JWT_SECRET, Target, wide

Spelling = Callable[[str], str]


def every_byte(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


IN_PATH: Mapping[str, Callable[[Target, str], str]] = {
    "plain": lambda _, job: job,
    "upper case": lambda _, job: job.upper(),
    "every byte encoded": lambda _, job: every_byte(job),
    "encoded twice": lambda _, job: quote(every_byte(job)),
    "slash behind": lambda _, job: job + "/",
    "slashes before": lambda _, job: "//" + job,
    "dot segment": lambda _, job: "./" + job,
    "back and forth": lambda _, job: f"x/../{job}",
    "out of the folder": lambda t, job: f"../../{t.tenant}/jobs/{job}",
    "out of the folder, encoded": lambda t, job: quote(f"../../{t.tenant}/jobs/{job}", safe=""),
    "out of the folder, encoded twice": lambda t, job: quote(quote(f"../../{t.tenant}/jobs/{job}", safe="")),
    "overlong dots": lambda t, job: f"%c0%ae%c0%ae/{t.tenant}/jobs/{job}",
    "the whole key": lambda t, job: f"tenants/{t.tenant}/jobs/{job}",
    "the whole key, encoded": lambda t, job: quote(f"tenants/{t.tenant}/jobs/{job}", safe=""),
    "backslashes": lambda t, job: quote(f"..\\..\\{t.tenant}\\jobs\\{job}"),
    "nul behind": lambda _, job: job + "%00",
    "nul between": lambda t, job: f"{t.tenant}%00{job}",
    "line break": lambda _, job: job + "%0d%0aX-Tenant:%20globex",
    "space around": lambda _, job: f"%20{job}%20",
    "full width": lambda _, job: quote(wide(job)),
    "file behind": lambda _, job: job + "/job.json",
    "path parameter": lambda t, job: f"{job};tenant={t.tenant}",
    "tenant before": lambda t, job: f"{t.tenant}:{job}",
    "pattern": lambda _, job: job[:8] + "*",
    "half": lambda _, job: job[:18],
    "two at once": lambda _, job: f"{job},{job}",
    "query": lambda t, job: f"{job}?tenant={t.tenant}&tenantid={t.tenant}&prefix=tenants/{t.tenant}/",
}

BESIDE: Mapping[str, Callable[[Target, str], dict[str, str]]] = {
    "X-Tenant-Id": lambda t, _: {"X-Tenant-Id": t.tenant},
    "X-Wakeswap-Tenant": lambda t, _: {"X-Wakeswap-Tenant": t.tenant},
    "tenantid": lambda t, _: {"Tenantid": t.tenant},
    "ce-tenantid": lambda t, _: {"ce-tenantid": t.tenant, "ce-id": "1", "ce-specversion": "1.0"},
    "X-Forwarded-User": lambda t, _: {"X-Forwarded-User": t.tenant, "X-Remote-User": t.tenant},
    "X-Forwarded-Prefix": lambda t, _: {"X-Forwarded-Prefix": f"/tenants/{t.tenant}"},
    "X-Original-URL": lambda t, job: {"X-Original-URL": f"/tenants/{t.tenant}/jobs/{job}"},
    "X-HTTP-Method-Override": lambda _, __: {"X-HTTP-Method-Override": "DELETE"},
    "Cookie": lambda t, _: {"Cookie": f"tenant={t.tenant}; session={GLOBEX_KEY[:12]}"},
    "Host": lambda t, _: {"Host": f"{t.tenant}.wakeswap.example"},
    "Range": lambda _, __: {"Range": "bytes=0-10"},
    "If-None-Match": lambda _, __: {"If-None-Match": "*"},
    "Accept": lambda _, __: {"Accept": "image/jpeg"},
}

KEYS: Mapping[str, Callable[[Target, str], str]] = {
    # each gets the part of a key below its tenant's prefix
    "the whole key": lambda t, rest: f"tenants/{t.tenant}/{rest}",
    "up and over": lambda t, rest: f"../../{t.tenant}/{rest}",
    "up and over from the own prefix": lambda t, rest: f"tenants/{ACME}/../{t.tenant}/{rest}",
    "up and over from the inbox": lambda t, rest: f"tenants/{ACME}/inbox/../../{t.tenant}/{rest}",
    "up from a folder": lambda t, rest: f"x/../../../{t.tenant}/{rest}",
    "encoded dots": lambda t, rest: f"%2e%2e/%2e%2e/{t.tenant}/{rest}",
    "encoded slashes": lambda t, rest: quote(f"../../{t.tenant}/{rest}", safe=""),
    "encoded key": lambda t, rest: quote(f"tenants/{t.tenant}/{rest}", safe=""),
    "two slashes": lambda t, rest: f"tenants//{t.tenant}/{rest}",
    "slash before": lambda t, rest: f"/tenants/{t.tenant}/{rest}",
    "dot segment": lambda t, rest: f"./tenants/{t.tenant}/{rest}",
    "dot segment inside": lambda t, rest: f"tenants/./{t.tenant}/{rest}",
    "backslashes": lambda t, rest: f"..\\..\\{t.tenant}\\{rest}",
    "upper case": lambda t, rest: f"TENANTS/{t.tenant.upper()}/{rest}",
    "full width": lambda t, rest: wide(f"../../{t.tenant}/") + rest,
    "nul behind": lambda t, rest: f"tenants/{t.tenant}/{rest}\x00",
    "nul between": lambda t, rest: f"tenants/{ACME}/\x00/../{t.tenant}/{rest}",
    "line break": lambda t, rest: f"tenants/{t.tenant}/{rest}\n",
    "space behind": lambda t, rest: f"tenants/{t.tenant}/{rest} ",
    "s3 address": lambda t, rest: f"s3://wakeswap/tenants/{t.tenant}/{rest}",
    "file address": lambda t, rest: f"file:///tenants/{t.tenant}/{rest}",
    "combining mark": lambda t, rest: f"tenants/{t.tenant}\u0301/{rest}",
    "prefix alone": lambda t, _: f"tenants/{t.tenant}/",
}

PLACES: Mapping[str, Callable[[Target], str]] = {
    "an upload": lambda t: f"inbox/{t.name}.jpg",
    "a picture sent": lambda t: f"jobs/{t.jobs['succeeded']}/input/source.jpg",
    "a result": lambda t: f"results/{t.jobs['succeeded']}.jpg",
    "a template": lambda t: f"templates/{t.name}/target.jpg",
    "a record": lambda t: f"jobs/{t.jobs['failed']}/outcome.json",
}


def _segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(claims: Mapping[str, object], *, key: str = JWT_SECRET, alg: str = "HS256", **header: object) -> str:
    """A JWT; `alg` is only what the header says."""
    now = int(time.time()) // 3600 * 3600
    whole = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 7200, "sub": "s", **claims}
    text = f"{_segment({'typ': 'JWT', 'alg': alg, **header})}.{_segment(whole)}"
    signature = hmac.digest(key.encode(), text.encode(), hashlib.sha256)
    return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _swapped(tenant: str) -> str:
    """A token of acme's own, its claims exchanged."""
    head, _, signature = token({"tenant": ACME}).split(".")
    return f"{head}.{token({'tenant': tenant}).split('.')[1]}.{signature}"


CREDENTIALS: Mapping[str, Callable[[Target], str | None]] = {
    # what stands in the Authorization header; None: no such header
    "none": lambda _: None,
    "empty": lambda _: "",
    "the scheme alone": lambda _: "Bearer ",
    "another scheme": lambda t: "Basic " + base64.b64encode(f"{t.tenant}:{ACME_KEY}".encode()).decode(),
    "the tenant's name": lambda t: f"Bearer {t.tenant}",
    "name and own key": lambda t: f"Bearer {t.tenant}={ACME_KEY}",
    "own key and name": lambda t: f"Bearer {ACME_KEY},{t.tenant}",
    "a made-up key": lambda t: f"Bearer key-of-{t.tenant}-aaaaaaaaaaaaaaaa",
    "a key begun": lambda t: f"Bearer key-of-{t.tenant}-0123456789abc",
    "a key with one letter more": lambda t: f"Bearer key-of-{t.tenant}-0123456789abcdx",
    "a key in capitals": lambda t: f"Bearer KEY-OF-{t.tenant.upper()}-0123456789ABCD",
    "a pattern": lambda t: f"Bearer key-of-{t.tenant}-*",
    "an encoded key": lambda t: f"Bearer {every_byte(f'key-of-{t.tenant}-0123456789abcd')}",
    "a look-up part": lambda t: f"Bearer wk_{t.tenant}22_{'a' * 52}",
    "two keys": lambda t: f"Bearer {ACME_KEY} key-of-{t.tenant}-0123456789abcd",
    "no algorithm": lambda t: f"Bearer {token({'tenant': t.tenant}, alg='none')}",
    "no signature": lambda t: f"Bearer {token({'tenant': t.tenant}).rpartition('.')[0]}.",
    "another secret": lambda t: f"Bearer {token({'tenant': t.tenant}, key='x' * 32)}",
    "own key as secret": lambda t: f"Bearer {token({'tenant': t.tenant}, key=ACME_KEY)}",
    "claims exchanged": lambda t: f"Bearer {_swapped(t.tenant)}",
    "expired": lambda t: f"Bearer {token({'tenant': t.tenant, 'exp': 1})}",
    "another issuer": lambda t: f"Bearer {token({'tenant': t.tenant, 'iss': ISSUER + '.evil'})}",
    "another audience": lambda t: f"Bearer {token({'tenant': t.tenant, 'aud': 'other'})}",
    "both tenants": lambda t: f"Bearer {token({'tenant': [ACME, t.tenant]})}",
    "both tenants in one": lambda t: f"Bearer {token({'tenant': f'{ACME} {t.tenant}'})}",
    "a path as tenant": lambda t: f"Bearer {token({'tenant': f'{ACME}/../{t.tenant}'})}",
    "the tenant in capitals": lambda t: f"Bearer {token({'tenant': t.tenant.upper()})}",
    "the tenant under another claim": lambda t: f"Bearer {token({'tenantid': t.tenant, 'tenant_id': t.tenant})}",
    "a key of its own": lambda t: f"Bearer {token({'tenant': t.tenant}, key='y' * 32, jwk={'kty': 'oct', 'k': 'eQ'})}",
    "a path as key id": lambda t: f"Bearer {token({'tenant': t.tenant}, key='', kid='../../dev/null')}",
}  # fmt: skip
