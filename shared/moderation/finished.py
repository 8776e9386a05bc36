"""The finished picture, as it will be seen: looked at once more, and blurred where the tenant's policy says so.

Knows pictures, the look and its records.
"""

from __future__ import annotations

import numpy as np

from shared.context import Context
from shared.imaging import obscure
from shared.imaging.codec import Picture
from shared.jobs import decisions
from shared.jobs.decisions import BLUR, NSFW, WORDS
from shared.moderation.looking import Inspection
from shared.vision.protocols import Floats

FINISHED = "finished"
_SAME_PLACE = (FINISHED, "target")
"""Pictures whose text is where it is in the finished one, which may show it too small to be read."""
BLURRED_NSFW, BLURRED_WORDS = "blurred_nsfw", "blurred_words"
"""Warnings of a result."""


def checked(picture: Picture, ctx: Context) -> tuple[Picture, tuple[str, ...]]:
    """What may be shown, and what was done to it. What was found in the pictures that were sent counts too.

    The pixels may be changed in place. Raises ContentRefusedError, ReviewNeededError.
    """
    inspection = Inspection(ctx)
    inspection.look(FINISHED, picture)
    storage = ctx.storage
    sent = decisions.of_stage(storage.store, storage.tenant, storage.job, decisions.STAGES[0])
    blurred = [one for one in (*inspection.close(), *sent) if one.action == BLUR]
    if any(one.check == NSFW for one in blurred):
        return obscure.whole(picture), (BLURRED_NSFW,)
    texts = [one.boxes for one in blurred if one.check == WORDS and one.picture in _SAME_PLACE]
    if not texts:
        return picture, ()
    places = [box for boxes in texts for box in _boxes(boxes, picture)]
    for plane in (picture.pixels, picture.alpha):
        if plane is not None:  # a text may stand in either
            obscure.lines(plane, places)
    return picture, (BLURRED_WORDS,)


def _boxes(parts: tuple[float, ...], picture: Picture) -> list[Floats]:
    height, width = picture.pixels.shape[:2]
    return list(np.array(parts, np.float32).reshape(-1, 4, 2) * np.array([width, height], np.float32))
