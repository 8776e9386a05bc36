"""Where everything lies: the only place that builds object keys, and none it builds can leave its tenant.

    tenants/<tenant>/inbox/...                       uploads, as the tenant names them
    tenants/<tenant>/jobs/<job>/job.json             the accepted job
    tenants/<tenant>/jobs/<job>/input/<name>         pictures sent over HTTP
    tenants/<tenant>/jobs/<job>/<stage>/<name>       what a stage makes
    tenants/<tenant>/jobs/<job>/<stage>/work.<digest>.json   one event's lease, then its stored reply
    tenants/<tenant>/jobs/<job>/<stage>/decisions.json       what moderation decided about the stage's pictures
    tenants/<tenant>/jobs/<job>/<stage>/hold.<digest>.json, review.<digest>.json   an event that waits for a person
    tenants/<tenant>/jobs/<job>/outcome.json         how the job ended, written once
    tenants/<tenant>/results/<name>                  finished pictures
    tenants/<tenant>/usage/<month>/<job>.json        what a job that was accepted in the month used and costs
    tenants/<tenant>/slots/usage.json                jobs under way and taken in, for the tenant's quota
    system/line/<priority>/<tenant>/<time>.<job>.json   a job that waits for a slot; order of keys is order of start
    system/audit/<day>/<tenant>/<job>.<part>.jsonl   what was decided, and by whom
    system/retention/<tenant>/<name>.json            a deletion under way
    system/...                                       records that no tenant may reach

Pure text; does no I/O.
"""

from __future__ import annotations

import re

from shared.rejections import InvalidKeyError, UnknownTenantError

TENANTS = "tenants/"
NOBODY = "_nobody"
"""In place of a tenant in the audit, where none is known; no tenant can have this name."""
MAX_KEY_BYTES = 1024
"""S3's limit for a key in UTF-8."""

_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_JOB = re.compile(r"[a-z0-9](?:[a-z0-9-]{6,62}[a-z0-9])")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def tenant_name(text: str) -> str:
    """`text` when it is a tenant name (a DNS label of at most 40 characters). Raises UnknownTenantError."""
    if not _TENANT.fullmatch(text):
        raise UnknownTenantError("A tenant name is a DNS label of at most 40 characters.")
    return text


def check(key: str) -> str:
    """`key` when every store can hold it as it is. Raises InvalidKeyError.

    Dot segments and empty segments are legal in S3 but leave a prefix, or meet another key, once something maps
    keys to paths (a folder store, a proxy that normalises); so no key of ours has them. Keys are compared as
    they are: no Unicode normalisation, since NFC and NFD names are two objects in S3.
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidKeyError("The key is not valid Unicode.") from None
    if not key or size > MAX_KEY_BYTES:
        raise InvalidKeyError(f"A key has 1 to {MAX_KEY_BYTES} bytes.")
    if _CONTROL.search(key) or "\\" in key:
        raise InvalidKeyError("A key holds no control characters and no backslash.")
    if any(part in ("", ".", "..") for part in key.split("/")):
        raise InvalidKeyError("A key has no empty and no dot segments.")
    return key


def prefix(tenant: str) -> str:
    return f"{TENANTS}{tenant_name(tenant)}/"


def owner(key: str) -> str:
    """The tenant whose prefix holds `key`. Raises InvalidKeyError for any other key."""
    check(key)
    parts = key.split("/", 2)
    if len(parts) < 3 or parts[0] + "/" != TENANTS:
        raise InvalidKeyError("The key lies in no tenant's prefix.")
    return tenant_name(parts[1])


def inside(tenant: str, key: str) -> str:
    """`key` when it lies in the tenant's own prefix. Raises InvalidKeyError."""
    if not check(key).startswith(prefix(tenant)):
        raise InvalidKeyError("The key lies outside the tenant's prefix.")
    return key


def inbox(tenant: str, name: str = "") -> str:
    """Key of an upload, or the inbox prefix itself when `name` is empty."""
    base = f"{prefix(tenant)}inbox/"
    return inside(tenant, base + name) if name else base


def jobs(tenant: str) -> str:
    return f"{prefix(tenant)}jobs/"


def job(tenant: str, job_id: str, *names: str) -> str:
    """A key below one job: `job(t, j, "detect", "landmarks.npz")`; without names the job's prefix."""
    base = f"{jobs(tenant)}{_part(_JOB, job_id, 'job id')}/"
    return base + "/".join(_part(_NAME, name, "object name") for name in names)


def work(tenant: str, job_id: str, stage: str, digest: str) -> str:
    """The idempotency record of one event at one stage."""
    return job(tenant, job_id, stage, f"work.{digest}.json")


def result(tenant: str, name: str) -> str:
    return f"{prefix(tenant)}results/{_part(_NAME, name, 'result name')}"


def usage(tenant: str, month: str, job_id: str = "") -> str:
    """A job's usage record, or the prefix of a month's. `month`: YYYY-MM."""
    base = f"{prefix(tenant)}usage/{_part(_MONTH, month, 'month')}/"
    return f"{base}{_part(_JOB, job_id, 'job id')}.json" if job_id else base


def slots(tenant: str) -> str:
    return prefix(tenant) + "slots/usage.json"


def line(priority: str, tenant: str = "") -> str:
    """The prefix of all waiting jobs of a priority, or of a tenant's."""
    base = system("line", priority) + "/"
    return f"{base}{tenant_name(tenant)}/" if tenant else base


def waiting(priority: str, tenant: str, created: str, job_id: str) -> str:
    """A job's place in the line: behind all that were created before it. `created`: RFC 3339, UTC."""
    moment = _part(_NAME, re.sub(r"[^0-9TZ.]", "", created) or "0", "time")
    return f"{line(priority, tenant)}{moment}.{_part(_JOB, job_id, 'job id')}.json"


def audit(day: str = "", tenant: str = "", name: str = "") -> str:
    """One object of the audit, or the prefix of a tenant's day, of a day, of all. `day`: YYYY-MM-DD."""
    key = system("audit") + "/"
    if day:
        key += _part(_DAY, day, "day") + "/"
    if tenant:
        key += (NOBODY if tenant == NOBODY else tenant_name(tenant)) + "/"
    return key + (_part(_NAME, name, "object name") if name else "")


def is_day(text: str) -> bool:
    return _DAY.fullmatch(text) is not None


def deletion(tenant: str, name: str = "") -> str:
    """The plan of a deletion, or the prefix of a tenant's; NOBODY's for what belongs to no tenant."""
    base = f"{system('retention')}/{NOBODY if tenant == NOBODY else tenant_name(tenant)}/"
    return base + (_part(_NAME, name, "object name") if name else "")


def system(*names: str) -> str:
    return "system/" + "/".join(_part(_NAME, name, "object name") for name in names)


def _part(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise InvalidKeyError(f"Not a valid {what}.")
    return text
