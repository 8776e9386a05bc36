"""What the cluster's own settings must allow, and what is written there that Knative does not read."""

from __future__ import annotations

from collections.abc import Iterator

from infra.platform.configs import DEFAULTS, OTHERS, Config, allowed
from infra.platform.needs import missing
from infra.platform.rules.registry import rule
from infra.platform.stack import Stack, mapping, name_of


@rule("flag-missing", "The webhook refuses what the cluster's settings do not allow.")
def flag_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for need in missing(stack):
        yield need.where, f"needs {need.key}: {need.wanted} in ConfigMap {need.config}"


@rule("flag-value", "A value that Knative does not know, `enable` for one, is ignored without a word.")
def flag_value(stack: Stack) -> Iterator[tuple[str, str]]:
    for config, data in stack.configs.written.items():
        for key, text in data.items():
            words = allowed(config, key)
            if words and text.lower() not in words:
                yield f"ConfigMap {config}: {key}", f"is {text!r}; Knative reads {', '.join(sorted(words))}"
            if DEFAULTS[config].get(key, "").isdigit() and not text.isdigit():
                yield f"ConfigMap {config}: {key}", f"is {text!r}, and no number"


@rule("flag-name", "A key that Knative does not know is ignored without a word.")
def flag_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for config, data in stack.configs.written.items():
        for key in data.keys() - DEFAULTS[config].keys() - OTHERS.get(config, frozenset()):
            yield f"ConfigMap {config}: {key}", "is no setting of Knative's"


@rule("config-elsewhere", "Knative reads its ConfigMaps in its own namespaces; an overlay's namespace moves them away.")
def config_elsewhere(stack: Stack) -> Iterator[tuple[str, str]]:
    names = {config.name for config in DEFAULTS}
    for doc in stack.of("ConfigMap", "v1"):
        metadata = mapping(doc.get("metadata"))
        config = Config(str(metadata.get("namespace")), str(metadata.get("name")))
        if config.name in names and config not in DEFAULTS:
            yield f"{name_of(doc)}: metadata.namespace", f"{metadata.get('namespace')!r} is none of Knative's"
