"""`make fuzz`: 10,000 mutated requests and events against real processes, and what came of them as a table."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.fuzz.run import Figures, run

COUNT, WARM_UP = 10_000, 2_000
GROWTH = 0.10
"""Largest part by which a process may grow after its warm-up."""


def main() -> int:
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(folder), COUNT, WARM_UP, first)
    _print(figures)
    return int(bool(figures.tally.faults) or max(figures.growth.values()) > GROWTH)


def _print(figures: Figures) -> None:
    tally = figures.tally
    print(f"{tally.count} requests in {figures.seconds:.0f} s, the slowest answered in {tally.slowest:.2f} s")
    for door, counter in sorted(tally.statuses.items()):
        counts = ", ".join(f"{status or 'closed'}: {number}" for status, number in sorted(counter.items()))
        print(f"  {door:32} {counts}")
    for name, part in figures.growth.items():
        warm, end = (figures.warm[name] / 2**20, figures.end[name] / 2**20)
        print(f"memory of {name:12} {warm:.1f} MiB after the warm-up, {end:.1f} MiB at the end ({part:+.1%})")
    for fault in tally.faults:
        print(f"FAULT {fault}")


if __name__ == "__main__":
    sys.exit(main())
