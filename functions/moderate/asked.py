"""The models that a job asks for by name, held against the tenant's licences before a picture is read."""

from __future__ import annotations

from shared.context import Models
from shared.events.payloads import Options


def permit(options: Options, models: Models) -> None:
    """Raises UnknownModelError, ModelForbiddenError. The swap or enhance stage would, after all the work before it."""
    models.permit(options.swapper, "swapper")
    for name, role in ((options.enhancer, "enhancer"), (options.upscaler, "upscaler")):
        if name:
            models.permit(name, role)
