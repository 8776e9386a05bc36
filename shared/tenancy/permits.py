"""What a job may ask for, by its tenant's policy. Pure decisions; the licences of models are decided in `licences`."""

from __future__ import annotations

from shared.rejections import NotAllowedError
from shared.tenancy.tenant import Policy

ENHANCE = "enhance"


def check(policy: Policy, *, swapper: str, enhancer: str, upscaler: str) -> None:
    """Hold the models that a job asks for against the stages and names that its tenant may use.

    Raises NotAllowedError whose context names the option's `field`.
    """
    for field, name in (("enhancer", enhancer), ("upscaler", upscaler)):
        if name and ENHANCE not in policy.stages:
            raise NotAllowedError(
                f"The tenant may not use the stage {ENHANCE}.", context={"field": field, "stage": ENHANCE}
            )
        if name:
            _among(field, name, policy.enhancers)
    _among("swapper", swapper, policy.swappers)


def priority(policy: Policy, wanted: str) -> str:
    """The priority of a job that would have `wanted`: never above the tenant's highest."""
    return "batch" if "batch" in (policy.priority, wanted) else "interactive"


def _among(field: str, name: str, allowed: tuple[str, ...]) -> None:
    if allowed and name not in allowed:
        raise NotAllowedError(
            f"The tenant may not use {name!r}; it may use {', '.join(allowed)}.",
            context={"field": field, "model": name, "allowed": [*allowed]},
        )
