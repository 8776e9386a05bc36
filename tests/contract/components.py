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


BARE = ""
"""As an overlay: the base and nothing else."""
CACHES = ("cache-pod", "node-cache-daemonset", "node-cache-pvc")


@cache
def rendered(overlay: str, *components: str) -> tuple[dict[str, Any], ...]:
    """The overlay as if it listed these components too, after its own; a cache takes the place of its own."""
    if overlay and not components:
        return render(ROOT / "knative/overlays" / overlay)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(ROOT / "knative", Path(folder) / "knative") / "overlays" / (overlay or "bare")
        kustomization = _kustomization(copy)
        own = [path.rpartition("/")[2] for path in kustomization.get("components", [])]
        if set(CACHES) & set(components):
            own = [name for name in own if name not in CACHES]
        listed = sorted({*own, *components}, key=_order)
        kustomization["components"] = [f"../../components/{name}" for name in listed]
        (copy / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        return render(copy)


def render(folder: Path) -> tuple[dict[str, Any], ...]:
    """What `kubectl apply -k` would send."""
    kubectl = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or "kubectl"
    done = subprocess.run([kubectl, "kustomize", str(folder)], check=True, capture_output=True, text=True)
    return tuple(yaml.load_all(done.stdout, yaml.CSafeLoader))  # the other one takes as long as kubectl


def _kustomization(folder: Path) -> dict[str, Any]:
    if folder.name != "bare":
        loaded: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text())
        return loaded
    folder.mkdir()
    images = [{"name": "wakeswap", "newTag": "0.1.0"}, {"name": "wakeswap-gpu", "newTag": "0.1.0"}]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "wakeswap",
        "resources": ["../../base"],
        "images": images,
    }


def _order(component: str) -> tuple[int, str]:
    """What makes Services, what mounts their models, what changes them, what names a tenant: as the READMEs say."""
    stages = ("fused-front", "spot-batch", *CACHES, "gpu")
    place = {name: place for place, name in enumerate(stages)} | {"dedicated-tenant": len(stages) + 1}
    return place.get(component, len(stages)), component


def of_kind(docs: tuple[dict[str, Any], ...], kind: str, api: str = "") -> dict[str, dict[str, Any]]:
    found = [doc for doc in docs if doc["kind"] == kind and doc["apiVersion"].startswith(api)]
    return {doc["metadata"]["name"]: doc for doc in found}
