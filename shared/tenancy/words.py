"""Which of a tenant's banned words stand in a text that was read from a picture. Pure text.

Both sides are compared in NFKC and without case. A word counts where it stands alone: `ass` is not in `class`. Scripts
that put no spaces between words (Chinese, Japanese, Thai, ...) have no such bounds. Simple evasion is seen through:

- digits for letters: 0 for o, 1 for i and l, 3 for e, 4 for a, 5 for s, 7 for t;
- one or two signs between letters (`b.a.d`, `ba-d`);
- a space after every letter (`b a d`), which may not come with whole syllables (`ba d` is two words).

A word of the list may be a phrase; its spaces stand for any spaces and signs, or none, also over the end of a line.
What is not seen through: letters of other scripts that look alike, letters left out or doubled, words cut by a hyphen
at the end of a line, mirrored text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_LOOK_ALIKES = {"o": "0", "i": "1l", "l": "1i", "e": "3", "a": "4", "s": "5", "t": "7"}
"""What may stand for a letter; OCR itself takes i and l for each other. A banned digit means itself only."""
_SIGNS = r"(?:[^\w\s]|_){0,2}"
_SPACED = r"(?:[^\S\n]|[^\w\s]|_){1,3}"
_BETWEEN_WORDS = r"[\W_]*"
_UNSPACED = ("CJK ", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""First words of the Unicode names of letters whose scripts put no spaces between words."""


@dataclass(frozen=True)
class Found:
    word: int
    """Index into the list of banned words."""
    lines: tuple[int, ...]
    """Indices of the lines of text on which it stands."""


def find(lines: Sequence[str], banned: Sequence[str]) -> list[Found]:
    """Every banned word once for each place where it stands in these lines of one picture."""
    folded = [fold(line).replace("\n", " ") for line in lines]
    text = "\n".join(folded)
    starts = [0]
    for line in folded:
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for index, word in enumerate(banned):
        pattern = _pattern(word)
        for match in pattern.finditer(text) if pattern else ():
            touched = [
                row for row in range(len(folded)) if starts[row] < match.end() and match.start() < starts[row + 1]
            ]
            found.append(Found(index, tuple(touched)))
    return found


def fold(text: str) -> str:
    """NFKC without case; folding can undo the normal form, so it is made again."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=16384)
def _pattern(word: str) -> re.Pattern[str] | None:
    """None for a word without a single letter or digit, which would stand everywhere."""
    parts = [part for part in re.split(r"[\W_]+", fold(word)) if part]
    if not parts:
        return None
    letters = [[_letter(letter) for letter in part] for part in parts]
    close = _BETWEEN_WORDS.join(_SIGNS.join(part) for part in letters)
    spread = _SPACED.join(letter for part in letters for letter in part)
    before = "" if _unspaced(parts[0][0]) else r"(?<![^\W_])"
    after = "" if _unspaced(parts[-1][-1]) else r"(?![^\W_])"
    return re.compile(f"{before}(?:{close}|{spread}){after}")


def _letter(letter: str) -> str:
    alike = _LOOK_ALIKES.get(letter, "")
    return f"[{letter}{alike}]" if alike else re.escape(letter)


def _unspaced(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(_UNSPACED)
