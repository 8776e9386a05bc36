"""What a job's options mean to a swapper."""

from __future__ import annotations

from shared.context import Context
from shared.events.choices import Options
from shared.vision.protocols import Masker, Occluder, Parser, SwapOptions

_NO_PADDING = (0.0, 0.0, 0.0, 0.0)


def maskers_of(options: Options, ctx: Context) -> list[Masker]:
    """The operator's models, asked for by name, so that the tenant's licence policy holds."""
    found: list[Masker] = []
    if "occlusion" in options.masks:
        found.append(ctx.models.get(ctx.models.chosen("occluder"), Occluder))
    if "region" in options.masks:
        found.append(ctx.models.get(ctx.models.chosen("parser"), Parser))
    return found


def swap_options(options: Options) -> SwapOptions:
    """A box without feather and padding hides nothing: so it is when it is not asked for."""
    box = "box" in options.masks
    return SwapOptions(
        eyes=options.eyes,
        shape=options.shape,
        boost=options.boost,
        colour_match=options.colour_match,
        mask_blur=options.mask_blur if box else 0.0,
        mask_padding=_four(options.mask_padding) if box else _NO_PADDING,
    )


def _four(padding: tuple[float, ...]) -> tuple[float, float, float, float]:
    top, right, bottom, left = padding
    return top, right, bottom, left
