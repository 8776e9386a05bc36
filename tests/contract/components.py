"""The manifests of an overlay together with components, as `kubectl apply -k` would send them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
COMPONENTS = sorted(path.name for path in (ROOT / "knative/components").iterdir() if path.is_dir())


@cache
def rendered(overlay: str, *components: str) -> tuple[dict[str, Any], ...]:
    """The overlay as if it listed these components, in this order."""
    kubectl = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or "kubectl"
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(ROOT / "knative", Path(folder) / "knative") / "overlays" / overlay
        kustomization = yaml.safe_load((copy / "kustomization.yaml").read_text())
        kustomization["components"] = [f"../../components/{name}" for name in components]
        (copy / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        done = subprocess.run([kubectl, "kustomize", str(copy)], check=True, capture_output=True, text=True)
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(docs: tuple[dict[str, Any], ...], kind: str, api: str = "") -> dict[str, dict[str, Any]]:
    found = [doc for doc in docs if doc["kind"] == kind and doc["apiVersion"].startswith(api)]
    return {doc["metadata"]["name"]: doc for doc in found}
