"""docs/trace.svg: one job's trace as a picture, drawn from the spans that a run wrote.

    python docs/trace_picture.py                      the picture of docs/trace.jsonl
    python docs/trace_picture.py spans.jsonl          the same of the job in a file of WAKESWAP_TRACE_FILE, whose
                                                      spans are kept as docs/trace.jsonl (`make trace` makes one)

Reads the SDK's JSON of spans; knows their names in shared/serving and nothing else.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
SPANS, PICTURE = DOCS / "trace.jsonl", DOCS / "trace.svg"

LEFT, RIGHT, TOP, BOTTOM = 118, 64, 66, 40
WIDTH = 1000
LANE, BAR, THIN = 52, 16, 9
COLD = "cold start"
TITLE = "One job from the notification of an upload to the webhook"
INK, MUTED, LINE = "#1f2328", "#59636e", "#d1d9e0"
COLOURS = {COLD: "#d4a72c", "stage": "#0969da", "step": "#8c959f", "work": "#54aeff", "webhook": "#1a7f37"}
LEGEND = ((COLD, "cold start"), ("stage", "a stage, a request"), ("work", "its work"), ("webhook", "webhook"),
          ("step", "imports, models"))  # fmt: skip


@dataclass(frozen=True)
class Bar:
    """A span in seconds since the trace began."""

    lane: str
    name: str
    start: float
    end: float
    id: str
    parent: str
    model: str

    @property
    def thick(self) -> bool:
        """Whether it stands by itself: not a step of another."""
        return self.name in (COLD, self.lane) or " /" in self.name

    @property
    def colour(self) -> str:
        return COLOURS.get(self.name, COLOURS["stage" if self.thick else "step"])

    @property
    def label(self) -> str:
        return f"{self.name} {self.model}".strip()


def main() -> int:
    if len(sys.argv) > 1:
        kept = largest(json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines())
        SPANS.write_text("".join(json.dumps(_trimmed(span)) + "\n" for span in kept))
    PICTURE.write_text(picture(json.loads(line) for line in SPANS.read_text().splitlines()))
    return 0


def largest(spans: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The trace with the most spans: a job's, and not one of the clock's ticks."""
    found = list(spans)
    ((trace, _),) = Counter(span["context"]["trace_id"] for span in found).most_common(1)
    return sorted((span for span in found if span["context"]["trace_id"] == trace), key=lambda span: span["start_time"])


def bars(spans: Iterable[dict[str, Any]]) -> list[Bar]:
    found = [
        Bar(
            span["resource"]["attributes"]["service.name"],
            span["name"],
            datetime.fromisoformat(span["start_time"]).timestamp(),
            datetime.fromisoformat(span["end_time"]).timestamp(),
            span["context"]["span_id"],
            span["parent_id"] or "",
            str(span["attributes"].get("wakeswap.model", "")),
        )
        for span in spans
    ]
    zero = min(bar.start for bar in found)
    moved = [Bar(bar.lane, bar.name, bar.start - zero, bar.end - zero, bar.id, bar.parent, bar.model) for bar in found]
    return sorted(moved, key=lambda bar: (bar.start, -bar.end))


def picture(spans: Iterable[dict[str, Any]]) -> str:
    found = bars(spans)
    lanes = list(dict.fromkeys(bar.lane for bar in found if bar.thick and bar.name != COLD))
    lanes.sort(key=lambda lane: min(bar.start for bar in found if bar.lane == lane and bar.name != COLD and bar.thick))
    ends = max(bar.end for bar in found)
    scale = (WIDTH - LEFT - RIGHT) / ends
    height = TOP + LANE * len(lanes) + BOTTOM
    rows = {lane: TOP + LANE * index for index, lane in enumerate(lanes)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="ui-sans-serif, system-ui, sans-serif" font-size="12">',
        f"<title>{TITLE}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 22, f"{TITLE}, every function asleep before it", INK, size=15),
        *_legend(),
        *_axis(ends, scale, height),
        *(part for lane in lanes for part in _lane(lane, rows[lane])),
        *_waits(found, rows, scale),
        *(part for bar in found for part in _bar(bar, rows[bar.lane], scale)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend() -> list[str]:
    parts, x = [], float(LEFT)
    for kind, words in LEGEND:
        parts += [_rect(x, 34, 12, 12, COLOURS[kind]), _text(x + 17, 44, words, MUTED)]
        x += 37 + 6.6 * len(words)
    parts.append(f'<line x1="{x:.1f}" x2="{x + 20:.1f}" y1="40" y2="40" {_DASHED}/>')
    return [*parts, _text(x + 25, 44, "its event waits: broker, cold start", MUTED)]


_DASHED = f'stroke="{MUTED}" stroke-width="1.2" stroke-dasharray="3 3" fill="none"'


def _axis(ends: float, scale: float, height: int) -> list[str]:
    """A line each nice number of seconds, at most twelve of them."""
    step = next(step for step in (0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60) if ends / step <= 12)
    parts, bottom = [], height - BOTTOM + 4
    for index in range(int(ends / step) + 1):
        x = LEFT + index * step * scale
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}" stroke="{LINE}"/>')
        parts.append(_text(x, bottom + 16, f"{index * step:g} s", MUTED, anchor="middle"))
    return parts


def _lane(lane: str, y: int) -> list[str]:
    return [
        f'<line x1="8" x2="{WIDTH - 8}" y1="{y - 7}" y2="{y - 7}" stroke="{LINE}"/>',
        _text(LEFT - 12, y + 12, lane, INK, anchor="end", size=13),
    ]


def _waits(found: Sequence[Bar], rows: dict[str, int], scale: float) -> list[str]:
    """From the end of a span, or from where a request went on without it, to the stages that follow."""
    by_id, parts = {bar.id: bar for bar in found}, []
    for bar in found:
        above = by_id.get(bar.parent)
        if above is None or not bar.thick or bar.name == COLD:
            continue
        left = min(above.end, bar.start)
        x1, y1 = LEFT + left * scale, rows[above.lane] + BAR / 2
        x2, y2 = LEFT + bar.start * scale, rows[bar.lane] + BAR / 2
        if above.end > bar.start:  # a request that is kept open until its job has ended
            x1 = LEFT + above.start * scale + 3
        parts.append(f'<path d="M{x1:.1f} {y1:.1f} V{y2:.1f} H{x2:.1f}" {_DASHED}/>')
    return parts


def _bar(bar: Bar, y: int, scale: float) -> list[str]:
    x, width = LEFT + bar.start * scale, max((bar.end - bar.start) * scale, 1.5)
    top, height = (y, BAR) if bar.thick else (y + BAR + 4, THIN)
    if bar.thick is False and bar.name.startswith("warm"):
        top += THIN + 2
    seconds = f"{bar.end - bar.start:.2f} s"
    title = f"<title>{escape(f'{bar.lane}: {bar.label}, {seconds}')}</title>"
    shape = _rect(x, top, width, height, bar.colour, inside=title)
    if not bar.thick or bar.end - bar.start < 0.015:
        return [shape]
    words = seconds if bar.name in (COLD, bar.lane) else f"{bar.name}  {seconds}"
    if width > 7 * len(words):
        return [shape, _text(x + 5, y + 12, words, "#ffffff" if bar.name != COLD else INK)]
    if bar.name == COLD:
        return [shape]
    if x + width + 7 * len(words) < WIDTH:
        return [shape, _text(x + width + 5, y + 12, words, MUTED)]
    return [shape, _text(x + width, y + BAR + 14, words, MUTED, anchor="end")]


def _rect(x: float, y: float, width: float, height: float, colour: str, *, inside: str = "") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" fill="{colour}">'
        f"{inside}</rect>"
    )


def _text(x: float, y: float, words: str, colour: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(words)}</text>"
    )


def _trimmed(span: dict[str, Any]) -> dict[str, Any]:
    """Without what only tells machines apart."""
    service = span["resource"]["attributes"]["service.name"]
    return {**span, "resource": {"attributes": {"service.name": service}}}


if __name__ == "__main__":
    sys.exit(main())
