"""What an ONNX file says about itself, read without the weights: versions and files it needs beside it.

A walk over the file's own tags (`shared.models.wire`), so that the light image needs no `onnx`.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from shared.errors import ModelIncompatibleError, ModelIncompleteError, ModelInvalidError
from shared.models.wire import fields

MAX_IR = 14
MAX_OPSET = 28
"""Newest IR and operator set that onnxruntime 1.32 loads, by trying (tests/unit/models/test_onnx_file.py)."""

_CHILDREN: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 8: "opset", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""Field numbers of onnx.proto3 that lead to versions or to tensors stored outside."""


@dataclass(frozen=True)
class OnnxFacts:
    ir: int
    opset: int
    """Of the standard domain; 0 when the model imports none."""
    external: frozenset[str]
    """Locations of weights kept in other files, as the model writes them."""


def check(path: Path) -> None:
    """Raises ModelIncompatibleError (too new), ModelIncompleteError (a weights file is not beside it),
    ModelInvalidError (no ONNX, or weights outside its own folder).
    """
    facts = read(path)
    if facts.ir > MAX_IR or facts.opset > MAX_OPSET:
        raise ModelIncompatibleError(
            f"{path.name} has IR {facts.ir} and opset {facts.opset}; this runtime knows {MAX_IR} and {MAX_OPSET}.",
            context={"ir": facts.ir, "opset": facts.opset, "max_ir": MAX_IR, "max_opset": MAX_OPSET},
        )
    for location in sorted(facts.external):
        if len(PurePosixPath(location).parts) != 1 or location in ("", ".", "..") or "\\" in location:
            raise ModelInvalidError(f"{path.name} keeps weights outside its own folder: {location!r}.")
        if not (path.parent / location).is_file():
            raise ModelIncompleteError(f"{path.name} needs the file {location!r}.", context={"file": location})


def read(path: Path) -> OnnxFacts:
    """Raises ModelInvalidError when the file is no ONNX model."""
    if path.stat().st_size == 0:
        raise ModelInvalidError(f"{path.name} is an empty file.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _facts(data)
        except (ValueError, IndexError, UnicodeDecodeError) as error:
            raise ModelInvalidError(f"{path.name} is no ONNX model.") from error


def _facts(data: mmap.mmap) -> OnnxFacts:
    ir, opset, external, graphs = 0, 0, set(), 0
    stack = [("model", 0, len(data))]
    while stack:
        kind, start, end = stack.pop()
        for number, value, span in fields(data, start, end):
            child = _CHILDREN[kind].get(number) if span else None
            if kind == "model" and number == 1:
                ir = value
            graphs += child == "graph"
            if child == "opset":
                opset = max(opset, _standard_opset(data, *span))
            elif child == "entry":
                external |= _location(data, *span)
            elif child:
                stack.append((child, *span))
    if not ir or not graphs:
        raise ValueError("no IR version or no graph")
    return OnnxFacts(ir, opset, frozenset(external))


def _standard_opset(data: mmap.mmap, start: int, end: int) -> int:
    domain, version = b"", 0
    for number, value, span in fields(data, start, end):
        if number == 1 and span:
            domain = data[span[0] : span[1]]
        elif number == 2:
            version = value
    return version if domain in (b"", b"ai.onnx") else 0


def _location(data: mmap.mmap, start: int, end: int) -> set[str]:
    """The value of a {key, value} entry whose key is "location"."""
    texts = {number: data[span[0] : span[1]].decode() for number, _, span in fields(data, start, end) if span}
    return {texts.get(2, "")} if texts.get(1) == "location" else set()
