"""A tenant and its policy: plain data, decided on by pure code.

Knows the error tree and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

from shared.tenancy.api_keys import ApiKey
from shared.tenancy.fields import Flag, Real, Several, Text, Whole, Word
from shared.tenancy.licences import ALLOWED

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
"""A DNS label of at most 40 characters, so that a name fits into keys, labels and namespaces."""
ASKED_FOR = ("enhance",)
"""Stages that no job passes unless it asks for them."""
ACTIONS = ("reject", "review", "blur")
MODEL = Text("[a-z0-9][a-z0-9_.-]{0,63}", "a model's name in the catalogue")
HOST = Text(
    r"(?:\*\.)?(?=[^*]{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?",
    "a host name in lower case, with *. before it if those below it are meant too",
)

QUEUE = Text(
    r"(?:arn:aws[a-z-]{0,20}:sqs:[a-z0-9-]{1,30}:[0-9]{12}:[A-Za-z0-9_-]{1,75}(?:\.fifo)?)?",
    "the ARN of an SQS queue, or empty",
)


@dataclass(frozen=True)
class Webhook:
    """Where finished, rejected and failed jobs are announced."""

    url: Annotated[str, Text(r"(?:https?://[^\s]{1,2000})?", "an https address")] = ""
    """https address; empty: nothing is sent."""
    secret: str = field(default="", repr=False)
    """Standard Webhooks secret, `whsec_` and base64; never logged."""
    allow_local: Annotated[bool, Flag()] = False
    """Also plain http and addresses of this machine: for trying out webhooks on one's own desk, never in a cloud."""


@dataclass(frozen=True)
class Policy:
    """What a tenant may do, with the defaults of a tenant that says nothing."""

    max_concurrent: Annotated[int, Whole(1, 1000)] = 8
    """Jobs under way at once, interactive and batch together. Over HTTP one more is refused; an upload waits."""
    max_batch: Annotated[int, Whole(1, 1000)] = 1
    """Of these, jobs of batches; the others of a batch wait for their turn."""
    jobs_per_minute: Annotated[int, Whole(1, 100_000)] = 120
    """Jobs taken in within one minute."""
    jobs_per_day: Annotated[int, Whole(1, 10_000_000)] = 10_000
    """Jobs taken in within one day (UTC)."""
    max_pixels: Annotated[int, Whole(1, 200_000_000)] = 50_000_000
    """Largest picture, width x height (an 8K frame is 33 million)."""
    max_bytes: Annotated[int, Whole(1, 1_000_000_000)] = 50_000_000
    """Largest uploaded picture."""
    max_video_bytes: Annotated[int, Whole(1, 100_000_000_000)] = 1_000_000_000
    """Largest uploaded video."""
    max_seconds: Annotated[int, Whole(1, 86_400)] = 600
    """Longest video."""
    max_frames: Annotated[int, Whole(1, 10_000_000)] = 36_000
    """Most frames of a video (60 a second for ten minutes)."""
    max_segments: Annotated[int, Whole(1, 1000)] = 4
    """Segments of one video under way at once."""
    max_output: Annotated[int, Whole(240, 16_384)] = 16_384
    """Largest result in lines of a 16:9 frame, either way up, 240..16384: 2160 is 4K (3840 x 2160), and no picture
    taken in has more than 16384. What an upscaler made is never larger than 4K, unless the target was."""
    licences: Annotated[str, Word(tuple(ALLOWED))] = "commercial-only"
    """Models that a job may ask for: `commercial-only`, `research` (also non-commercial ones) or `any` (also those
    whose terms are not known)."""
    stages: Annotated[tuple[str, ...], Several(Word(ASKED_FOR), most=len(ASKED_FOR))] = ("enhance",)
    """Stages that a job may ask for beside those that every job passes."""
    swappers: Annotated[tuple[str, ...], Several(MODEL, most=64)] = ()
    """Swappers that a job may ask for, by their catalogue names; none named: all that the licences allow."""
    enhancers: Annotated[tuple[str, ...], Several(MODEL, most=64)] = ()
    """Enhancers and upscalers that a job may ask for; none named: all that the licences allow."""
    model_tag: Annotated[str, Text(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?", "a version or channel, or empty")] = ""
    """Version or channel of the bucket's models for this tenant's jobs; empty: the installation's."""
    priority: Annotated[str, Word(("interactive", "batch"))] = "interactive"
    """Highest priority of the tenant's jobs: `interactive`, or `batch`, with which nobody waits for a job of theirs."""
    nsfw_threshold: Annotated[float, Real(0, 1)] = 0.8
    """open_nsfw score from which a picture is not safe for work, 0..1 (Yahoo: above 0.8 with high confidence)."""
    nsfw_action: Annotated[str, Word(ACTIONS)] = "reject"
    """What happens then: `reject`; `review`, the job waits for a person; `blur`, the finished picture is blurred."""
    banned_words: Annotated[
        tuple[str, ...],
        Several(Text(r"[^\x00-\x1f\x7f]{1,100}", "1 to 100 characters, none of them a control character"), most=1000),
    ] = ()
    """Words that must not stand in a picture, whatever their case; none: pictures are not read."""
    words_action: Annotated[str, Word(ACTIONS)] = "reject"
    """What happens when one does: `reject`, `review`, or `blur`, the words are blurred in the finished picture."""
    fetch_hosts: Annotated[tuple[str, ...], Several(HOST, most=100)] = ()
    """Hosts from which a job may name pictures by https address; `*.example.com` also means hosts below it."""
    keep_inputs_hours: Annotated[int, Whole(1, 24 * 3660)] = 24
    """Hours after a job's end until what was sent for it is deleted, with what its stages made on the way."""
    keep_results_hours: Annotated[int, Whole(1, 24 * 3660)] = 24 * 30
    """Hours after a job's end until its result is deleted."""
    link_seconds: Annotated[int, Whole(60, 604_800)] = 3600
    """How long a result's link works, 60..604800 (the longest a presigned link can)."""
    isolation: Annotated[str, Word(("shared", "dedicated"))] = "shared"
    """`shared` functions, or `dedicated` ones in a namespace of the tenant's own."""
    wake: Annotated[str, Word(("ahead", "after-moderation", "none"))] = "ahead"
    """When a job's later stages are woken: `ahead`, all at once as it comes in; `after-moderation`, so that a refused
    picture wakes none of them; `none`, each by its own event only."""


@dataclass(frozen=True)
class Dedicated:
    """What a tenant whose `policy.isolation` is `dedicated` gets of the cluster; for any other it means nothing."""

    gpus: Annotated[int, Whole(0, 1000)] = 0
    """GPUs for all its stages together."""
    cpus: Annotated[int, Whole(0, 100_000)] = 0
    """CPUs that its pods may ask for together. 0: as many as all stages ask for at their largest scale."""
    memory_gib: Annotated[int, Whole(0, 1_000_000)] = 0
    """GiB of memory that its pods may ask for together. 0: as `cpus`."""
    queue: Annotated[str, QUEUE] = ""
    """ARN of an SQS queue of its own, which hears of its uploads. Empty: uploads start no jobs."""


@dataclass(frozen=True)
class Tenant:
    name: str
    policy: Policy = field(default_factory=Policy)
    webhook: Webhook = field(default_factory=Webhook)
    keys: tuple[ApiKey, ...] = field(default=(), repr=False)
    dedicated: Dedicated = field(default_factory=Dedicated)
