"""What the person who starts the platform decides; everything else is in the manifests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PLATFORM_PORT = "platform"
"""The name under which `--port` sets the port of the broker's front door and the admin pages."""


@dataclass(frozen=True)
class Options:
    """One run of the platform."""

    overlay: Path = Path("knative/overlays/local")
    """A kustomize overlay, a folder of YAML files, or one file."""
    state: Path = Path(".wakeswap")
    """The state folder; one platform at a time."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Variables for every container, over the manifests' own."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Port by Service name (or `platform`), over the annotation local.wakeswap.dev/port; 0 takes any free one."""
    usual_ports: bool = True
    """Whether that annotation counts; a platform that nobody was told of takes free ports."""
    idle: float | None = None
    """Seconds without a request before a function sleeps; None keeps the manifests' window and retention."""
    max_pods: int = max(1, (os.cpu_count() or 1) // 2)
    """Most processes of one Service at a time, besides its max-scale: each may want a core for itself."""
    grace: float = 10.0
    """Seconds for a function to finish after SIGTERM, besides its timeoutSeconds."""
    deliveries: int = 8
    """Events of one Trigger in flight at a time."""
