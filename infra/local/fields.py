"""Strict reading of manifest documents: values by their full path, and no field passed over in silence.

It may know the shape of parsed YAML (mappings, lists, scalars) and nothing of any kind of object.
"""

from collections.abc import Collection, Mapping

NOT_IMPLEMENTED = "not implemented by the local platform"


class ManifestError(ValueError):
    """A manifest asks for what cannot be done; `field` is the full path, such as `spec.delivery.retry`.

    Without a reason, `field` is the whole message (a document that cannot be read has no field to name).
    """

    def __init__(self, field: str, reason: str = "") -> None:
        super().__init__(f"{field}: {reason}" if reason else field)
        self.field = field
        self.reason = reason


def below(path: str, key: str) -> str:
    """The path of `key` inside `path`; keys with dots or slashes (annotations) are put in brackets."""
    if "." in key or "/" in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def refuse_unknown(
    mapping: Mapping[str, object],
    allowed: Collection[str],
    path: str,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Raise ManifestError for the first key of `mapping` that is not in `allowed`.

    `path` is where the mapping stands in its document ("" for the document itself); `notes` adds, for
    known keys, why they are not implemented.
    """
    for key in mapping:
        if key not in allowed:
            note = (notes or {}).get(key)
            raise ManifestError(below(path, key), f"{NOT_IMPLEMENTED} ({note})" if note else NOT_IMPLEMENTED)


def as_mapping(value: object, path: str) -> Mapping[str, object]:
    """`value` as a mapping with text keys; None (an empty YAML value) is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ManifestError(path, "must be a mapping")
    for key in value:
        if not isinstance(key, str):
            raise ManifestError(path, f"key {key!r} must be text")
    return value


def mapping_at(parent: Mapping[str, object], key: str, path: str) -> Mapping[str, object]:
    """The mapping under `key` of the mapping at `path`; absent or null is an empty one."""
    return as_mapping(parent.get(key), below(path, key))


def list_at(parent: Mapping[str, object], key: str, path: str) -> list[object]:
    """The list under `key`; absent or null is an empty one."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ManifestError(below(path, key), "must be a list")
    return value


def text_at(parent: Mapping[str, object], key: str, path: str) -> str | None:
    """The text under `key`, None when absent; a number or truth value is refused, as Kubernetes does."""
    value = parent.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ManifestError(below(path, key), f"must be text, not {value!r} (quote it)")


def required_text(parent: Mapping[str, object], key: str, path: str) -> str:
    """The text under `key`; absent or empty is refused."""
    value = text_at(parent, key, path)
    if not value:
        raise ManifestError(below(path, key), "is required")
    return value


def integer_at(parent: Mapping[str, object], key: str, path: str, minimum: int) -> int | None:
    """The whole number under `key`, None when absent; below `minimum` is refused."""
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ManifestError(below(path, key), f"must be a whole number, not {value!r}")
    if value < minimum:
        raise ManifestError(below(path, key), f"must be at least {minimum}, not {value}")
    return value


def text_mapping_at(parent: Mapping[str, object], key: str, path: str) -> dict[str, str]:
    """The mapping under `key` with text values only (labels, annotations, filters)."""
    inner = mapping_at(parent, key, path)
    return {name: text_at(inner, name, below(path, key)) or "" for name in inner}
