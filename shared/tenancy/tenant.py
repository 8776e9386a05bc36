"""A tenant and its policy: plain data, decided on by pure code.

Knows the error tree and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
"""A DNS label of at most 40 characters, so that a name fits into keys, labels and namespaces."""


@dataclass(frozen=True)
class Webhook:
    """Where finished, rejected and failed jobs are announced."""

    url: str = ""
    """https address; empty: nothing is sent."""
    secret: str = field(default="", repr=False)
    """Standard Webhooks secret, `whsec_` and base64; never logged."""
    allow_local: bool = False
    """Also plain http and addresses of this machine: for trying out webhooks on one's own desk, never in a cloud."""


@dataclass(frozen=True)
class Policy:
    nsfw_threshold: float = 0.8
    """open_nsfw score from which a picture is refused, 0..1 (Yahoo's note: above 0.8 is NSFW with high confidence)."""
    max_pixels: int = 50_000_000
    """Largest picture, width x height (an 8K frame is 33 million)."""
    max_bytes: int = 50_000_000
    """Largest uploaded file."""
    link_seconds: int = 3600
    """How long a result's link works, 60..604800 (the longest a presigned link can)."""
    max_output: int = 16_384
    """Largest result in lines of a 16:9 frame, either way up, 240..16384: 2160 is 4K (3840 x 2160), and no picture
    taken in has more than 16384. What an upscaler made is never larger than 4K, unless the target was."""
    wake: str = "ahead"
    """When a job's later stages are woken: `ahead`, all at once as it comes in; `after-moderation`, so that a refused
    picture wakes none of them; `none`, each by its own event only."""
    licences: str = "commercial-only"
    """Models that a job may ask for: `commercial-only`, `research` (also non-commercial ones) or `any` (also those
    whose terms are not known)."""


@dataclass(frozen=True)
class Tenant:
    name: str
    policy: Policy = field(default_factory=Policy)
    webhook: Webhook = field(default_factory=Webhook)
    key_digest: str = field(default="", repr=False)
    """SHA-256 of the API key, hex. One key a tenant for now."""
