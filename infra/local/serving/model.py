"""What a Knative Service asks for, as frozen dataclasses. Seconds are floats; knows nothing of YAML or processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Probe:
    """One HTTP or TCP check of the container's port; `successes` and `failures` are the thresholds."""

    scheme: Literal["http", "tcp"] = "tcp"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    initial_delay: float = 0.0
    period: float = 0.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3


@dataclass(frozen=True, slots=True)
class KeyRef:
    """One key of a ConfigMap or Secret."""

    kind: Literal["ConfigMap", "Secret"]
    name: str
    key: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class EnvVar:
    """One `env` entry: a literal text, or a reference when `ref` is set."""

    name: str
    value: str = ""
    ref: KeyRef | None = None


@dataclass(frozen=True, slots=True)
class EnvSource:
    """One `envFrom` entry: every key of a ConfigMap or Secret."""

    kind: Literal["ConfigMap", "Secret"]
    name: str
    prefix: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    volume: str
    path: str
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """emptyDir, or the keys of a ConfigMap or Secret as files; `items` maps key to file name, empty for all."""

    name: str
    kind: Literal["emptyDir", "ConfigMap", "Secret"]
    source: str = ""
    items: tuple[tuple[str, str], ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Container:
    name: str
    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    working_dir: str | None = None
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvSource, ...] = ()
    mounts: tuple[Mount, ...] = ()
    readiness: Probe = field(default_factory=Probe)
    liveness: Probe | None = None
    startup: Probe | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """The autoscaling annotations. `max_pods` 0 is no limit; `target` None means containerConcurrency or 100."""

    min_pods: int = 0
    max_pods: int = 0
    initial_pods: int = 0
    window: float = 60.0
    retention: float = 0.0
    target: float | None = None
    utilization: float | None = None


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One Service. `public_port` None takes any free port; `response_start` bounds the wait for the first byte."""

    namespace: str
    name: str
    revision: str
    container: Container
    init: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    concurrency: int = 0
    timeout: float = 300.0
    response_start: float = 300.0
    progress_deadline: float = 600.0
    scale: Scale = field(default_factory=Scale)
    public_port: int | None = None

    @property
    def pod_capacity(self) -> float:
        """Requests in flight that one pod should hold before another is started.

        An explicit target or utilisation counts as the autoscaler's does (target * utilisation); without either a
        pod is filled to its containerConcurrency, because Knative's 70 % headroom would start two processes for
        one request on the few cores of one machine.
        """
        limit = float(self.concurrency or 100)
        target = min(self.scale.target or limit, limit)
        return target * (self.scale.utilization or 100.0) / 100.0
