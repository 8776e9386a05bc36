"""What must never stand in a log line, taken out of any text: credentials by their shape and by their value,
and the bytes of pictures. Pure text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

GONE = "[redacted]"

_SHAPES = (
    (re.compile(r"(?i)\b(bearer)\s+(?!\[)[^\s\"',;]+"), rf"\1 {GONE}"),
    (re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?(?:basic|digest))\s+[^\s\"',;]+"), rf"\1 {GONE}"),
    (re.compile(r"whsec_[A-Za-z0-9+/=_-]+"), f"whsec_{GONE}"),
    # Presigned links and AWS's Authorization header; `=` may itself be percent-encoded, or be a dict's colon.
    (
        re.compile(
            r"(?i)\b((?:x-amz-)?(?:signature|credential|security-token))([\"']?\s*(?:=|:|%3D)\s*[\"']?)"
            r"(?!\[)[^&\s\"'<>,;]+"
        ),
        rf"\1\2{GONE}",
    ),
    (re.compile(r"://[^/\s:@\"']+:[^/\s@\"']+@"), f"://{GONE}@"),
    (re.compile(r"\bb(?:'(?:[^'\\]|\\.){17,}'?|\"(?:[^\"\\]|\\.){17,}\"?)", re.DOTALL), "<bytes>"),
    (re.compile(r"[A-Za-z0-9+/]{256,}={0,2}"), "<base64>"),
)


class Redactor:
    """Takes known secrets and everything that looks like one out of a text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        if self._known:
            text = self._known.sub(GONE, text)
        for shape, replacement in _SHAPES:
            text = shape.sub(replacement, text)
        return text


def _forms(secret: str) -> set[str]:
    """The secret as other texts write it: plain, in a URL, in a repr, and a webhook secret without its prefix."""
    bare = secret.removeprefix("whsec_")
    return {secret, bare, quote(secret, safe=""), quote(bare, safe=""), repr(secret)[1:-1]}
