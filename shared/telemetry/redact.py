"""What must never stand in a log line, taken out of any text: credentials by their shape and by their value, the
bytes of pictures, and what people call their files. Pure text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, unquote

GONE = "[redacted]"

_QUERY = re.compile(r"(?i)(\?|%3F)(?!\[).+")


def _without_query(address: re.Match[str]) -> str:
    return _QUERY.sub(rf"\1{GONE}", address[0], count=1)


_SHAPES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?i)\b(bearer)\s+(?!\[)[^\s\"',;]+"), rf"\1 {GONE}"),
    (re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?(?:basic|digest))\s+[^\s\"',;]+"), rf"\1 {GONE}"),
    (re.compile(r"whsec_[A-Za-z0-9+/=_-]+"), f"whsec_{GONE}"),
    (re.compile(r"\b(wk_[a-z2-7]{8})_[a-z2-7]+"), rf"\1_{GONE}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), GONE),
    (
        re.compile(
            r"(?i)(passw(?:or)?d|secret|api[_-]?key|access[_-]token)([\"']?\s*[:=]\s*[\"']?)"
            r"(?![\[\s])[^\s\"',;&]+"
        ),
        rf"\1\2{GONE}",
    ),
    # Presigned links and AWS's Authorization header; `=` may itself be percent-encoded, or be a dict's colon.
    (
        re.compile(
            r"(?i)\b((?:x-amz-)?(?:signature|credential|security-token))([\"']?\s*(?:=|:|%3D)\s*[\"']?)"
            r"(?!\[)[^&\s\"'<>,;]+"
        ),
        rf"\1\2{GONE}",
    ),
    # Any address's query may be what opens it; that of a picture somebody named is nobody's business in any case.
    (re.compile(r"(?i)\bhttps?(?::|%3A)(?:/|%2F)[^\s\"'<>]*"), _without_query),
    (re.compile(r"://[^/\s:@\"']*:[^/\s@\"']+@"), f"://{GONE}@"),
    # Names may hold anything but a line break, so whatever follows goes too.
    (re.compile(r"(?i)\b(tenants(?:/|%2F)[a-z0-9-]+(?:/|%2F)(?:inbox|templates)(?:/|%2F))(?!\[)[^\n]+"), rf"\1{GONE}"),
    (re.compile(r"(?i)\b(filename\*?=)(?!\[)(?:\"[^\"\n]*\"|[^\s;,\"]+)"), rf"\1{GONE}"),
    (re.compile(r"\bb(?:'(?:[^'\\]|\\.){17,}'?|\"(?:[^\"\\]|\\.){17,}\"?)", re.DOTALL), "<bytes>"),
    (re.compile(r"[A-Za-z0-9+/]{256,}={0,2}"), "<base64>"),
    (re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,}\b"), GONE),
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
    """The secret as other texts write it: plain, in a URL or out of one, in a repr, in JSON; a webhook's bare."""
    bare = secret.removeprefix("whsec_")
    spelt = {
        quote(secret, safe=""),
        quote(bare, safe=""),
        unquote(secret),
        repr(secret)[1:-1],
        json.dumps(secret)[1:-1],
    }
    return {secret, bare, *spelt}
