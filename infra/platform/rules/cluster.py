"""What the cluster's own settings must allow, and what is written there that Knative does not read."""

from __future__ import annotations

from collections.abc import Iterator

from infra.platform.configs import DEFAULTS, allowed
from infra.platform.needs import missing
from infra.platform.rules.registry import rule
from infra.platform.stack import Stack


@rule("flag-missing", "The webhook refuses what the cluster's settings do not allow.")
def flag_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for need in missing(stack):
        yield need.where, f"needs {need.key}: {need.wanted} in ConfigMap {need.config}"


@rule("flag-value", "A value that Knative does not know, `enable` for one, is ignored without a word.")
def flag_value(stack: Stack) -> Iterator[tuple[str, str]]:
    for config, data in stack.configs.written.items():
        for key, text in data.items():
            words = allowed(config, key)
            if words and text.strip().lower() not in words:
                yield f"ConfigMap {config}: {key}", f"is {text!r}; Knative reads {', '.join(sorted(words))}"


@rule("flag-name", "A flag that Knative does not know is ignored without a word.")
def flag_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for config, data in stack.configs.written.items():
        for key in data.keys() - DEFAULTS[config].keys():
            if key.startswith("kubernetes.") or config.name == "config-features":
                yield f"ConfigMap {config}: {key}", "is no flag of Knative's"
