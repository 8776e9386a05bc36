"""One look at a picture: what the models say, what the tenant's policy makes of it, and that it is on record.

The same for what was sent and for what was made. The models are the operator's choice; where no moderator is chosen
(WAKESWAP_MODERATION=off) nothing is looked at, and no job can bring that about. A tenant's banned words need a reader:
where the operator chose none, the tenant's jobs wait. Knows the context, the protocols and the records.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shared.context import Context, SetupContext
from shared.errors import JsonValue
from shared.imaging import shown
from shared.imaging.codec import Picture
from shared.jobs import decisions, holds
from shared.jobs.decisions import APPROVED, BLUR, NSFW, PASS, REJECT, REVIEW, WORDS, Decision
from shared.jobs.holds import ReviewNeededError
from shared.rejections import ContentRefusedError
from shared.tenancy import words
from shared.vision.protocols import Image, Moderator, Reader, TextLine

MODERATOR, READER = "moderator", "reader"


def warm(ctx: SetupContext) -> None:
    """Of every process that looks: the reader is loaded by the first tenant with banned words, and by nobody else."""
    if ctx.models.chosen(MODERATOR):
        ctx.models.warm(MODERATOR)
    else:
        ctx.log.warning("moderation is turned off: WAKESWAP_MODERATION=off")


class Inspection:
    """Of one event's pictures."""

    def __init__(self, ctx: Context, *, video: bool = False, part: str = "") -> None:
        """`video`: of a job about one. No video is blurred, what would be is refused; and of the frames that are looked
        at under one name, the worst goes on record. `part`: which of several events of one stage this is."""
        self._ctx, self._video, self._part = ctx, video, part
        self._made: list[Decision] = []

    def look(self, picture: str, image: Picture) -> None:
        """`picture`: its part in the job. Raises ContentRefusedError, once that is on record.

        A picture with alpha is looked at in each way in which it may be seen; what is found in one of them counts.
        """
        if not self._ctx.models.chosen(MODERATOR):
            return
        score, touched, which = 0.0, list[TextLine](), set[int]()
        for view in shown.views(image.pixels, image.alpha):
            score = max(score, self._ctx.models.get(MODERATOR, Moderator).score(view))
            if self._ctx.tenant.policy.banned_words:
                lines, found = self._read(view)
                touched += lines
                which |= found
            self._ctx.deadline.check()
        self._note(self._nsfw(picture, score))
        if self._ctx.tenant.policy.banned_words:
            self._note(self._words(picture, touched, which, image.pixels))
        self._refuse()

    def _note(self, made: Decision) -> None:
        for number, one in enumerate(self._made):
            if self._video and (one.picture, one.check) == (made.picture, made.check):
                self._made[number] = max(one, made, key=lambda each: each.score)
                return
        self._made.append(made)

    def close(self) -> tuple[Decision, ...]:
        """The decisions, now on record. Raises ReviewNeededError when a person has to look."""
        made = tuple(self._made)
        if made:
            decisions.keep(self._ctx.storage, made, self._part)
        if checks := sorted({one.check for one in made if one.action == REVIEW}):
            raise ReviewNeededError("A person has to look at this job.", context={"checks": [*checks]})
        return made

    def _read(self, view: Image) -> tuple[list[TextLine], set[int]]:
        """Lines with banned words, and which words they are."""
        lines = self._ctx.models.get(READER, Reader).read(view)
        found = words.find([line.text for line in lines], self._ctx.tenant.policy.banned_words)
        touched = sorted({index for one in found for index in one.lines})
        return [lines[index] for index in touched], {one.word for one in found}

    def _nsfw(self, picture: str, score: float) -> Decision:
        policy, model = self._ctx.tenant.policy, self._model(MODERATOR)
        action = self._action(NSFW, policy.nsfw_action) if score >= policy.nsfw_threshold else PASS
        return self._told(Decision(picture, NSFW, *model, round(score, 4), policy.nsfw_threshold, action))

    def _words(self, picture: str, touched: list[TextLine], which: set[int], image: Image) -> Decision:
        score = max((line.score for line in touched), default=0.0)
        action = self._action(WORDS, self._ctx.tenant.policy.words_action) if which else PASS
        found, where, model = tuple(sorted(which)), _parts(touched, image), self._model(READER)
        return self._told(Decision(picture, WORDS, *model, round(score, 4), 0.0, action, found, where))

    def _model(self, role: str) -> tuple[str, str]:
        """Name and digest."""
        return self._ctx.models.chosen(role), self._ctx.models.digest(role)

    def _told(self, made: Decision) -> Decision:
        facts = {"picture": made.picture, "check": made.check, "score": made.score, "action": made.action}
        self._ctx.log.info("moderated", extra=facts)
        self._ctx.metrics.count("moderated", check=made.check, action=made.action)
        return made

    def _action(self, check: str, wanted: str) -> str:
        """Where a person has let this job pass, that stands: also for what was made of what they saw."""
        storage = self._ctx.storage
        if wanted == BLUR and self._video:
            return REJECT
        if wanted != REVIEW:
            return wanted
        passed = holds.approved(storage.store, storage.tenant, storage.job, decisions.STAGES)
        return APPROVED if check in passed else REVIEW

    def _refuse(self) -> None:
        for one in self._made:
            if one.action == REJECT:
                decisions.keep(self._ctx.storage, tuple(self._made), self._part)
                raise ContentRefusedError(_sentence(one), context=_context(one))


def _sentence(one: Decision) -> str:
    if one.check == NSFW:
        return f"The {one.picture} picture is not safe for work."
    return f"The {one.picture} picture shows text that the tenant does not allow."


def _context(one: Decision) -> dict[str, JsonValue]:
    """Never the word itself: whoever sent the picture need not be shown the tenant's list."""
    found: dict[str, JsonValue] = {"picture": one.picture, "check": one.check, "score": round(one.score, 3)}
    return found | ({"threshold": one.threshold} if one.check == NSFW else {"words": [*one.words]})


def _parts(lines: Iterable[TextLine], image: Image) -> tuple[float, ...]:
    size = np.array([image.shape[1], image.shape[0]], np.float32)
    return tuple(round(float(part), 5) for line in lines for part in (line.box / size).ravel())
