"""Structural schemas: a document's unknown fields, wrong types, missing and impossible values.

Reads OpenAPI as CustomResourceDefinitions and Kubernetes' own definitions write it: what an API server with strict
decoding refuses. And one thing more: where a CRD leaves a part open, an API server takes anything there and drops what
it does not know, so open parts of a pod are held against Kubernetes' own definition of a pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from infra.platform.stack import Doc, listing, mapping

_OPEN = "x-kubernetes-preserve-unknown-fields"
_ANY = "x-kubernetes-int-or-string"
POD_SPEC = "io.k8s.api.core.v1.PodSpec"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KNATIVES_OWN = ("containerConcurrency", "timeoutSeconds", "responseStartTimeoutSeconds", "idleTimeoutSeconds")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Fault(NamedTuple):
    path: str
    says: str
    refused: bool = True
    """False where an API server takes the field and drops it."""


@dataclass(frozen=True)
class Schemas:
    kinds: Mapping[tuple[str, str], Doc]
    """Schema of (apiVersion, kind)."""
    definitions: Mapping[str, Doc] = field(default_factory=dict)
    """Kubernetes' definitions, by their full name."""

    @classmethod
    def of(cls, crds: Iterable[Doc], kinds: Mapping[tuple[str, str], Doc], definitions: Mapping[str, Doc]) -> Schemas:
        """Of CustomResourceDefinitions, and of other kinds whose schemas refer to `definitions`."""
        found = dict(kinds)
        for crd in crds:
            spec = mapping(crd.get("spec"))
            for version in listing(spec.get("versions")):
                api = f"{spec.get('group')}/{version.get('name')}"
                schema = mapping(mapping(version.get("schema")).get("openAPIV3Schema"))
                found[(api, str(mapping(spec.get("names")).get("kind")))] = schema
        return cls(found, definitions)

    def knows(self, doc: Doc) -> bool:
        return (str(doc.get("apiVersion")), str(doc.get("kind"))) in self.kinds

    def faults(self, doc: Doc) -> Iterator[Fault]:
        """Of the document's own schema. KeyError for a kind without one: see `knows`."""
        schema = self.kinds[(str(doc["apiVersion"]), str(doc["kind"]))]
        yield from self._faults(doc, {**schema, "properties": {**_ROOT, **mapping(schema.get("properties"))}}, "")
        if OBJECT_META in self.definitions and _is_open(mapping(mapping(schema.get("properties")).get("metadata"))):
            yield from self._faults(doc.get("metadata"), self.definitions[OBJECT_META], "metadata")

    def faults_of_pod(self, doc: Doc) -> list[Fault]:
        """Of a Knative Service, by Kubernetes' definition of a pod: what the schema of its kind is too open to say."""
        template = mapping(mapping(doc.get("spec")).get("template"))
        pod = {key: value for key, value in mapping(template.get("spec")).items() if key not in _KNATIVES_OWN}
        said = {fault.path for fault in self.faults(doc)}
        found = [
            *self._faults(pod, self.definitions[POD_SPEC], "spec.template.spec"),
            *self._faults(template.get("metadata"), self.definitions[OBJECT_META], "spec.template.metadata"),
        ]
        return [fault for fault in found if fault.path not in said and not _FILLED_IN.search(fault.path)]

    def _resolve(self, schema: Doc) -> Doc:
        reference = schema.get("$ref")
        return self.definitions[str(reference).rpartition("/")[2]] if reference else schema

    def _faults(self, value: object, raw: Doc, path: str) -> Iterator[Fault]:
        schema = self._resolve(raw)
        if value is None:
            return
        if not _has_type(value, schema):
            yield Fault(path, f"must be of type {schema.get('type')}, not {value!r}")
            return
        yield from _impossible(value, schema, path)
        if isinstance(value, Mapping):
            yield from self._of_object(value, schema, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._faults(item, mapping(schema.get("items")), f"{path}[{index}]")

    def _of_object(self, value: Doc, schema: Doc, path: str) -> Iterator[Fault]:
        properties, others = mapping(schema.get("properties")), schema.get("additionalProperties")
        for key in listing(schema.get("required")):
            if key not in value:
                yield Fault(_below(path, key), "is required")
        for key, inner in value.items():
            if key in properties:
                yield from self._faults(inner, properties[key], _below(path, key))
            elif isinstance(others, Mapping):
                yield from self._faults(inner, others, _below(path, key))
            elif others is not True and not (_is_open(schema) and not properties):
                yield Fault(_below(path, key), "is no field that anyone reads", refused=not _is_open(schema))


_ROOT: Doc = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
_FILLED_IN = re.compile(r"(containers\[\d+\]\.name|(httpGet|tcpSocket|grpc)\.port)$")
"""What Knative writes where a manifest does not."""


def _is_open(schema: Doc) -> bool:
    """Whether it says nothing of what is inside: marked so, or an object without properties."""
    if schema.get(_OPEN):
        return True
    return not schema.get("properties") and not isinstance(schema.get("additionalProperties"), Mapping | bool)


def _has_type(value: object, schema: Doc) -> bool:
    if schema.get(_ANY) or "oneOf" in schema or "anyOf" in schema:
        return isinstance(value, int | float | str)
    wanted: Any = schema.get("type")
    names = wanted if isinstance(wanted, list) else [wanted] if wanted else []
    if isinstance(value, bool) and names:
        return "boolean" in names
    return not names or any(isinstance(value, _TYPES[name]) for name in names)


def _impossible(value: object, schema: Doc, path: str) -> Iterator[Fault]:
    choices = listing(schema.get("enum"))
    if choices and value not in choices:
        yield Fault(path, f"must be one of {', '.join(map(str, choices))}, not {value!r}")
    pattern = schema.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str) and not re.search(pattern, value):
        yield Fault(path, f"{value!r} does not match {pattern}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            yield Fault(path, f"must be between {low} and {high}, not {value}")


def _below(path: str, key: object) -> str:
    text = str(key)
    if "." in text or "/" in text:
        return f"{path}[{text}]"
    return f"{path}.{text}" if path else text
