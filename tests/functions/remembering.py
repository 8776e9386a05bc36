"""A registry whose detector, landmarker and moderator look at the same pixels once, whatever swapper a test is about.

Knows which roles see only what is in a picture; every other model is asked each time.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import TypeVar, cast

from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.registry import ModelRegistry
from shared.vision.runtime import Runtime

A = TypeVar("A")
SEEING = ("detector", "landmarker", "moderator")


class Once:
    """An adapter whose real answers are kept: who asks the same gets a copy of the same."""

    def __init__(self, adapter: object, answers: dict[bytes, bytes]) -> None:
        self._adapter, self._answers = adapter, answers

    def __getattr__(self, method: str) -> Callable[..., object]:
        def ask(*arguments: object, **options: object) -> object:
            key = hashlib.sha256(pickle.dumps((type(self._adapter), method, arguments, options))).digest()
            if key not in self._answers:
                self._answers[key] = pickle.dumps(getattr(self._adapter, method)(*arguments, **options))
            return pickle.loads(self._answers[key])

        return ask


class Remembering(ModelRegistry):
    """For tests of what a swapper does with the faces that were found."""

    def __init__(self, catalog: Catalog, cache: ModelCache, runtime: Runtime) -> None:
        super().__init__(catalog, cache, runtime)
        self._answers: dict[bytes, bytes] = {}

    def get(self, name: str, protocol: type[A]) -> A:
        adapter = super().get(name, protocol)
        return cast("A", Once(adapter, self._answers)) if name in SEEING else adapter
