"""What the warnings about a source mean, and which of them are refused.

Pure words. Measured (docs/options.md): of 13 real faces in packages none is refused by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

POOR = ("source_shadowed", "source_hidden")
"""What `refuse` refuses: the result shows the edges of shadows, or is the target again."""
EMBEDDED = (*POOR, "source_hard_light", "source_glasses", "source_mouth_covered", "source_laughing")
"""What only the embedded swapper gives."""
REASONS: Mapping[str, str] = {
    "source_turned": "The face is turned away beyond 35 degrees.",
    "source_small": "The face is smaller than 80 pixels.",
    "source_shadowed": "Hard shadows lie on both sides of the face; their edges would show on every target.",
    "source_hidden": "Glasses and what covers the mouth leave too little of the face.",
    "source_hard_light": "The light is hard; what shade is left may read as dirt or beard.",
    "source_glasses": "The face wears glasses; eyes and brows stay the target's.",
    "source_mouth_covered": "The mouth is covered and stays the target's.",
    "source_laughing": "The mouth is wide open or laughs; its folds go along.",
}


def refused(warnings: Sequence[str], how: str) -> tuple[str, ...]:
    """Those for which the source is refused. `how`: `refuse`, `strict` or `warn`."""
    if how == "warn":
        return ()
    return tuple(warning for warning in warnings if how == "strict" or warning in POOR)


def reasons(warnings: Sequence[str]) -> str:
    return " ".join(REASONS[warning] for warning in warnings)
