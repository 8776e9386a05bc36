"""The schemas of every kind that we write: Knative's CustomResourceDefinitions and those of other projects, which lie
beside this module (see crds/README.md), and Kubernetes' own, out of the package kubernetes-validate if it is installed.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from infra.platform.schemas import Schemas

HERE = Path(__file__).parent
KUBERNETES = "v1.34.0-local-strict"
"""The oldest Kubernetes that Knative Serving 1.22 runs on: what it knows, all newer ones know."""
PACKAGE = "kubernetes_validate"
CORE = {
    ("v1", "Namespace"): "namespace-v1",
    ("v1", "ConfigMap"): "configmap-v1",
    ("v1", "Secret"): "secret-v1",
    ("v1", "Service"): "service-v1",
    ("v1", "ServiceAccount"): "serviceaccount-v1",
    ("v1", "PersistentVolumeClaim"): "persistentvolumeclaim-v1",
    ("v1", "ResourceQuota"): "resourcequota-v1",
    ("v1", "LimitRange"): "limitrange-v1",
    ("apps/v1", "DaemonSet"): "daemonset-apps-v1",
    ("apps/v1", "Deployment"): "deployment-apps-v1",
    ("batch/v1", "Job"): "job-batch-v1",
    ("batch/v1", "CronJob"): "cronjob-batch-v1",
    ("networking.k8s.io/v1", "NetworkPolicy"): "networkpolicy-networking-v1",
    ("rbac.authorization.k8s.io/v1", "Role"): "role-rbac-v1",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "rolebinding-rbac-v1",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "clusterrole-rbac-v1",
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "clusterrolebinding-rbac-v1",
    ("scheduling.k8s.io/v1", "PriorityClass"): "priorityclass-scheduling-v1",
    ("policy/v1", "PodDisruptionBudget"): "poddisruptionbudget-policy-v1",
}


@cache
def schemas() -> Schemas | None:
    """None without Kubernetes' own, which `pip install -r tests/requirements.txt` brings."""
    if importlib.util.find_spec(PACKAGE) is None:
        return None
    folder = importlib.resources.files(PACKAGE) / "kubernetes-json-schema" / KUBERNETES
    definitions: dict[str, Any] = json.loads((folder / "_definitions.json").read_text())["$defs"]
    kinds = {kind: json.loads((folder / f"{file}.json").read_text()) for kind, file in CORE.items()}
    files = sorted([*HERE.glob("crds/*.yaml"), *HERE.glob("minimal/*.yaml")])
    crds = [doc for file in files for doc in yaml.load_all(file.read_text(), yaml.CSafeLoader)]
    return Schemas.of(crds, kinds, definitions)
