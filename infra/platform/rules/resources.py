"""How much a container may take, and of which image it is."""

from __future__ import annotations

import math
from collections.abc import Iterator

from infra.platform.quantities import amount
from infra.platform.rules.registry import rule
from infra.platform.stack import Stack, listing, mapping


@rule("resources", "Without a memory limit one picture may take the node's, and other tenants' pods with it.")
def resources(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        requests = mapping(mapping(container.spec.get("resources")).get("requests"))
        if container.limit("memory") is None or not {"cpu", "memory"} <= requests.keys():
            yield f"{container.where}.resources", "must say requests of cpu and memory, and a limit of memory"
        limits = mapping(mapping(container.spec.get("resources")).get("limits"))
        for name in requests.keys() & limits.keys() - {"nvidia.com/gpu"}:
            if amount(requests[name]) > amount(limits[name]):
                yield f"{container.where}.resources.requests[{name}]", f"is above its limit {limits[name]}"


@rule("quantity", "The API server refuses an amount that it cannot read, some only when the pod is made.")
def quantity(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for part in ("requests", "limits"):
            for name, value in mapping(mapping(container.spec.get("resources")).get(part)).items():
                if math.isnan(amount(value)):
                    yield f"{container.where}.resources.{part}[{name}]", f"{value!r} is no amount"
    for service in stack.services:
        for volume in map(mapping, listing(service.pod.get("volumes"))):
            folder, where = mapping(volume.get("emptyDir")), f"{service.where}: volume {volume.get('name')}"
            if math.isnan(amount(folder.get("sizeLimit", 0))):
                yield f"{where}.sizeLimit", f"{folder['sizeLimit']!r} is no amount"
            if folder.get("medium", "") not in ("", "Memory"):
                yield f"{where}.medium", "must be Memory, or not be there"


@rule("image-tag", "What `latest` is changes between two pods' nodes and two deploys: no roll-back leads to what ran.")
def image_tag(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        image = str(container.spec.get("image"))
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            yield f"{container.where}.image", f"{image!r} must have a tag of its own, or a digest"
