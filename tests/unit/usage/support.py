"""Usage records for tests: any, and by hand."""

from __future__ import annotations

from hypothesis import strategies as st

from shared.usage.pricing import Prices, read
from shared.usage.record import Bill, Measures, Modes, StageUse, Usage

seconds = st.integers(0, 3_600_000_000).map(lambda number: number / 10**6)
devices = st.dictionaries(st.sampled_from(["cpu", "cuda", "tensorrt", "vulkan"]), seconds, max_size=3)
modes = st.builds(
    Modes,
    swapper=st.sampled_from(["mesh", "hyperswap", "inswapper"]),
    boost=st.sampled_from([0, 256, 384, 512, 1024]),
    enhancer=st.sampled_from(["", "gfpgan_1.2"]),
    upscaler=st.sampled_from(["", "span_x4"]),
)
measures = st.builds(
    Measures,
    outcome=st.sampled_from(["completed", "rejected", "failed"]),
    frames=st.one_of(st.just(1), st.integers(0, 1_000_000)),
    pixels=st.integers(0, 60_000_000),
    modes=modes,
    device=devices,
    media=st.sampled_from(["image", "video"]),
    seconds=st.integers(0, 10**9).map(lambda number: number / 1000),
)


def usage(number: int, job: Measures, prices: Prices | None = None) -> Usage:
    return Usage(
        tenant="demo",
        job=f"job-{number:08}",
        accepted="2026-11-30T10:00:00.000Z",
        ended="2026-11-30T10:00:05.000Z",
        code="" if job.outcome == "completed" else "a_code",
        priority="interactive",
        measures=job,
        stages=(StageUse("detect", 0.125, 1.5, {}), StageUse("swap", 0.1, 0.0, dict(job.device))),
        stored_bytes=number,
        bill=(prices or read()).bill(job),
    )


def billed(number: int, cost: str, currency: str = "EUR") -> Usage:
    made = usage(number, Measures("completed", 1, 100, Modes("mesh"), {}))
    return Usage(**{**vars(made), "bill": Bill("v", currency, cost)})
