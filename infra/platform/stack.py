"""Rendered manifests as the checks look at them: documents, and the views of them that more than one rule needs.

Knows the shapes of Kubernetes' and Knative's objects, no rule. A field of the wrong type is the schemas' business: here
it counts as empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from infra.platform.configs import Configs

if TYPE_CHECKING:
    from infra.platform.schemas import Schemas

Doc: TypeAlias = Mapping[str, Any]
SERVING = "serving.knative.dev/"
EVENTING = "eventing.knative.dev/"
AUTOSCALING = "autoscaling.knative.dev/"


def mapping(value: object) -> Doc:
    return value if isinstance(value, Mapping) else {}


def listing(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def whole(value: object, default: int) -> int:
    """A number as it is written; `default` for 0, for nothing and for what is none."""
    return value if isinstance(value, int) and value else default


def name_of(doc: Doc) -> str:
    """`Kind/name`, as every message begins."""
    return f"{doc.get('kind')}/{mapping(doc.get('metadata')).get('name')}"


def annotations_of(doc: Doc) -> Doc:
    return mapping(mapping(doc.get("metadata")).get("annotations"))


@dataclass(frozen=True)
class Container:
    spec: Doc
    where: str
    init: bool

    @property
    def mounts(self) -> list[Doc]:
        return [mapping(mount) for mount in listing(self.spec.get("volumeMounts"))]

    @property
    def env(self) -> list[Doc]:
        return [mapping(entry) for entry in listing(self.spec.get("env"))]

    @property
    def sources(self) -> list[Doc]:
        return [mapping(source) for source in listing(self.spec.get("envFrom"))]

    def limit(self, resource: str) -> object:
        return mapping(mapping(self.spec.get("resources")).get("limits")).get(resource)


@dataclass(frozen=True)
class Service:
    """A Knative Service."""

    doc: Doc

    @property
    def name(self) -> str:
        return str(mapping(self.doc.get("metadata")).get("name"))

    @property
    def where(self) -> str:
        return name_of(self.doc)

    @property
    def template(self) -> Doc:
        return mapping(mapping(self.doc.get("spec")).get("template"))

    @property
    def scale(self) -> Doc:
        """The template's annotations without the prefix of autoscaling."""
        found = annotations_of(self.template).items()
        return {key.removeprefix(AUTOSCALING): value for key, value in found if key.startswith(AUTOSCALING)}

    @property
    def pod(self) -> Doc:
        return mapping(self.template.get("spec"))

    @property
    def volumes(self) -> dict[str, str]:
        """Name of each volume, and its kind."""
        entries = [mapping(entry) for entry in listing(self.pod.get("volumes"))]
        return {str(entry.get("name")): next((key for key in entry if key != "name"), "") for entry in entries}

    @cached_property
    def containers(self) -> list[Container]:
        """The init steps first, as they run."""
        fields = (("initContainers", True), ("containers", False))
        return [
            Container(mapping(spec), f"{self.where}: {field}[{index}]", init)
            for field, init in fields
            for index, spec in enumerate(listing(self.pod.get(field)))
        ]

    @property
    def serving(self) -> list[Container]:
        return [container for container in self.containers if not container.init]

    @property
    def has_gpu(self) -> bool:
        return any(container.limit("nvidia.com/gpu") is not None for container in self.serving)


@dataclass(frozen=True)
class Stack:
    """Everything of one overlay, and the cluster's settings that it will meet."""

    docs: Sequence[Doc]
    configs: Configs = field(default_factory=Configs)
    schemas: Schemas | None = None

    @cached_property
    def services(self) -> list[Service]:
        return [Service(doc) for doc in self.of("Service", SERVING)]

    @cached_property
    def triggers(self) -> list[Doc]:
        return self.of("Trigger", EVENTING)

    def of(self, kind: str, api: str = "") -> list[Doc]:
        found = [doc for doc in self.docs if doc.get("kind") == kind]
        return [doc for doc in found if str(doc.get("apiVersion")).startswith(api)]

    def has(self, kind: str, name: object, api: str = "") -> bool:
        return any(mapping(doc.get("metadata")).get("name") == name for doc in self.of(kind, api))

    def service(self, name: object) -> Service | None:
        return next((service for service in self.services if service.name == name), None)

    def containers(self) -> Iterator[tuple[Service, Container]]:
        for service in self.services:
            for container in service.containers:
                yield service, container


def spec_of(doc: Doc) -> Doc:
    return mapping(doc.get("spec"))
