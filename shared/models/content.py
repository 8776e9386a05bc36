"""Telling what a file is when it is not the model it should be.

A cache that only says "wrong digest" hides the cause; these are the ones seen in the field: a pointer where Git LFS
was not installed, a sign-in page, an object store's error document, nothing at all, half a file.
"""

from __future__ import annotations

from shared.errors import ModelInvalidError
from shared.models.receiving import Received

_WORDS = {
    "empty": "an empty file",
    "lfs_pointer": "a Git LFS pointer",
    "html": "an HTML page",
    "xml": "an XML document",
    "truncated": "cut off",
    "oversized": "longer than it should be",
    "wrong_digest": "another file of the same size",
}


def verify(name: str, received: Received, *, size: int, sha256: str) -> None:
    """Raises ModelInvalidError with `context["kind"]` unless `received` has the digest.

    `size` 0, `sha256` empty: not known; then a file passes that is none of the wrong ones.
    """
    kind = kind_of(received, size)
    if received.sha256 == sha256 or (not sha256 and kind == "wrong_digest"):
        return
    expected = f", expected {sha256[:12]}" if sha256 else ""
    raise ModelInvalidError(
        f"{name} is {_WORDS[kind]} ({received.size} bytes, sha256 {received.sha256[:12]}{expected}).",
        context={"kind": kind, "file": name, "size": received.size, "sha256": received.sha256},
    )


def kind_of(received: Received, size: int) -> str:
    """What a wrong file is, by its first bytes, then by its length."""
    if received.size == 0:
        return "empty"
    if named := _kind_of_text(received.head):
        return named
    if size in (0, received.size):
        return "wrong_digest"
    return "truncated" if received.size < size else "oversized"


def _kind_of_text(head: bytes) -> str:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(b"version https://git-lfs"):
        return "lfs_pointer"
    if text.startswith((b"<!doctype html", b"<html", b"<head")):
        return "html"
    if text.startswith((b"<?xml", b"<error")):
        return "xml"
    return ""
