"""The grammar of the inbox: which uploads together mean a job.

    tenants/<t>/inbox/<any>.job.json                 manifest: {"source": name | [names], "target": name, "options": {},
                                                     "reference": name}
    tenants/<t>/inbox/<folder>/source.* and target.* a pair: a job as soon as both are there
    tenants/<t>/inbox/templates/<template>/<picture> a source for the stored target
    tenants/<t>/templates/<template>/target.*        ... which lies here, outside the inbox

Planning only names objects; it reads listings and manifests, never a picture. Knows the store's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from shared import records
from shared.errors import InvalidOptionError, JsonValue, ObjectNotFoundError, PayloadTooLargeError
from shared.events.choices import Options
from shared.jobs import options
from shared.rejections import InvalidManifestError, ObjectGoneError
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore

MANIFEST = ".job.json"
MAX_MANIFEST_BYTES = 65_536
MAX_SOURCES = 8
"""Pictures of one source person."""
MARKER = "wakeswap-job"
"""User metadata of every object that we write ourselves; such an object never makes a job."""


@dataclass(frozen=True)
class Draft:
    """A job before its pictures were looked at."""

    unit: str
    """The key or folder that stands for it: the same uploads always have the same unit."""
    source: tuple[str, ...]
    """Full keys."""
    target: str
    options: Options = field(default_factory=Options)
    reference: str = ""
    """Full key, if the job has such a picture."""
    manifest: str = ""
    """Key of the manifest it comes from, if any."""


def is_upload(tenant: str, key: str) -> bool:
    """Whether a key lies in the inbox; hidden names (a program's unfinished files) do not count."""
    inbox = keys.inbox(tenant)
    return key.startswith(inbox) and not any(part.startswith(".") for part in key[len(inbox) :].split("/"))


def plan(store: ObjectStore, tenant: str, key: str) -> Draft | None:
    """The job that an upload at `key` starts or completes; None when it starts nothing (yet).

    Raises InvalidManifestError, InvalidOptionError, InvalidKeyError, and ObjectGoneError for a template without target.
    """
    if not is_upload(tenant, key):
        return None
    folder, _, name = key.rpartition("/")
    below = key[len(keys.inbox(tenant)) :].split("/")
    if name.endswith(MANIFEST):
        return _from_manifest(store, tenant, key)
    if below[0] == "templates" and len(below) > 2:
        return _from_template(store, tenant, below[1], key)
    if name.partition(".")[0] in ("source", "target") and "." in name:
        return _from_pair(store, folder + "/")
    return None


def parse_manifest(tenant: str, folder: str, body: JsonValue, *, addresses: bool = False) -> Draft:
    """The job that it describes; names are relative to `folder` (ending in `/`) unless they are full keys.

    `addresses`: whether a picture may also be given as `{"url": ...}`, whose text then stands for a key. Not in the
    inbox, where a repeat must find the same pictures again. Raises InvalidManifestError, InvalidKeyError,
    InvalidOptionError.
    """
    if not isinstance(body, dict):
        raise InvalidManifestError("A job is described by a JSON object.")
    if unknown := sorted(set(body) - {"source", "target", "reference", "options"}):
        raise InvalidManifestError("A job's description has an unknown field.", context={"field": unknown[0][:64]})

    def name(field: str, value: JsonValue) -> str:
        return (addresses and _address(field, value)) or _key(tenant, folder, field, value)

    sources = tuple(name("source", entry) for entry in source_names(body.get("source")))
    target = name("target", body.get("target"))
    reference = name("reference", body["reference"]) if body.get("reference") is not None else ""
    chosen = options.fit(options.parse(body.get("options", {})), sources=len(sources), reference=bool(reference))
    return Draft("", sources, target, chosen, reference)


def source_names(value: JsonValue) -> list[JsonValue]:
    """One name or a list of 1 to MAX_SOURCES. Raises InvalidManifestError."""
    names: list[JsonValue] = value if isinstance(value, list) else [value]
    if not 1 <= len(names) <= MAX_SOURCES:
        raise InvalidManifestError(f"A job has 1 to {MAX_SOURCES} sources.", context={"field": "source"})
    return names


def is_address(name: str) -> bool:
    """Whether a Draft's name is the address of a picture and no key."""
    return not name.startswith(keys.TENANTS)


def _address(name: str, value: JsonValue) -> str:
    """Empty for what is no `{"url": ...}`."""
    match value:
        case {"url": str(url), **more} if not more and is_address(url):
            return url
        case {}:
            raise InvalidManifestError(f"{name} must name an object or have its `url`.", context={"field": name})
    return ""


def _key(tenant: str, folder: str, name: str, value: JsonValue) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidManifestError(f"{name} must name an object.", context={"field": name})
    return keys.inside(tenant, value if value.startswith(keys.TENANTS) else folder + value)


def _from_manifest(store: ObjectStore, tenant: str, key: str) -> Draft:
    try:
        body = records.loads(store.get(key, limit=MAX_MANIFEST_BYTES)[0])
    except PayloadTooLargeError:
        raise InvalidManifestError(f"A manifest has at most {MAX_MANIFEST_BYTES} bytes.") from None
    except ObjectNotFoundError:
        raise ObjectGoneError(context={"key": key}) from None
    except ValueError:
        raise InvalidManifestError("The manifest is not valid JSON.") from None
    try:
        draft = parse_manifest(tenant, key.rpartition("/")[0] + "/", body)
    except InvalidOptionError as error:
        raise InvalidManifestError(error.detail, context=error.context) from None
    return replace(draft, unit=key, manifest=key)


def _from_template(store: ObjectStore, tenant: str, template: str, key: str) -> Draft:
    target = _newest(store, f"{keys.prefix(tenant)}templates/{template}/target.")
    if target is None:
        raise ObjectGoneError("The template has no stored target.", context={"template": template})
    return Draft(unit=key, source=(key,), target=target.key)


def _from_pair(store: ObjectStore, folder: str) -> Draft | None:
    source, target = _newest(store, folder + "source."), _newest(store, folder + "target.")
    if source is None or target is None:
        return None
    return Draft(unit=folder, source=(source.key,), target=target.key)


def _newest(store: ObjectStore, prefix: str) -> ObjectInfo | None:
    """Of `source.jpg` and `source.png` the one written last, so that late notifications do not matter."""
    found: Iterable[ObjectInfo] = store.list(prefix, limit=100, delimiter="/").objects
    return max(
        (entry for entry in found if not entry.key.endswith(MANIFEST)),
        key=lambda entry: (entry.modified, entry.key),
        default=None,
    )
