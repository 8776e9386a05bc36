"""The schemas, in tests that cannot do without them."""

from __future__ import annotations

from infra.platform import known
from infra.platform.schemas import Schemas


def schemas() -> Schemas:
    found = known.schemas()
    assert found, "kubernetes-validate is not installed: pip install -r tests/requirements.txt"
    return found
