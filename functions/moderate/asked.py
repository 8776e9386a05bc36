"""The models that a job asks for by name, held against the tenant's licences before a picture is read."""

from __future__ import annotations

from shared.context import Models
from shared.events.choices import Options

MASKERS = {"occlusion": "occluder", "region": "parser"}
"""Role of the model behind a mask that only a learned swapper asks for."""


def permit(options: Options, models: Models) -> None:
    """Raises UnknownModelError, ModelForbiddenError: the swap or enhance stage would, after all the work before it."""
    models.permit(options.swapper, "swapper")
    for name, role in ((options.enhancer, "enhancer"), (options.upscaler, "upscaler")):
        if name:
            models.permit(name, role)
    if not models.embedded(options.swapper):
        for role in (role for mask, role in MASKERS.items() if mask in options.masks):
            models.permit(models.chosen(role), role)
