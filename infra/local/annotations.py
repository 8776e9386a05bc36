"""The rule for annotations of every kind: keys of our own domains must be known, others are text for other programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from infra.local.fields import NOT_IMPLEMENTED, ManifestError, below


def refuse_unknown_annotations(annotations: Mapping[str, str], allowed: Collection[str], path: str) -> None:
    """Raise ManifestError for a key of *.knative.dev or local.wakeswap.dev that is not in `allowed`."""
    for key in annotations:
        domain = key.partition("/")[0]
        ours = domain == "knative.dev" or domain.endswith((".knative.dev", ".wakeswap.dev"))
        if ours and key not in allowed:
            raise ManifestError(below(path, key), NOT_IMPLEMENTED)
