"""On a real GPU, opt-in: `pytest -m gpu tests/gpu` where onnxruntime-gpu is installed in place of onnxruntime.

About a minute: a network of a quarter of inswapper's weight is built, and run a few hundred times.
"""

from __future__ import annotations

import numpy as np
import pytest

from shared.vision.protocols import SwapOptions, Target
from shared.vision.runtime import Runtime
from tests.gpu import checks
from tests.standins.swappers import FAMILIES, Build
from tests.standins.world import StandIns

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

HEAVY = Build(width=512, blocks=12)
"""28 million weights, 58 GFLOP a face; inswapper_128 has four times as many."""


@pytest.fixture(scope="module")
def cuda() -> Runtime:
    return Runtime("gpu")


@pytest.mark.filterwarnings("ignore:`estimate` is deprecated:FutureWarning")
def test_parity_with_insightface(cuda: Runtime, standins: StandIns) -> None:
    pytest.importorskip("insightface", reason="insightface is not installed (tests/requirements-no-deps.txt)")
    found = checks.parity(cuda, standins, Build())
    assert found.crop <= 1
    assert found.frame <= 2
    assert found.beyond < 1e-4


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_gives_on_cuda_what_it_gives_on_the_cpu(name: str, cuda: Runtime, standins: StandIns) -> None:
    frame = checks.picture(480, 640)
    shape = FAMILIES[name].source
    values = np.random.default_rng(0).random(shape, np.float32)
    pictures = []
    for runtime in (Runtime(), cuda):
        swapper = standins.swapper(name, runtime)
        targets = [Target(checks.mesh(x, 240), checks.SourceRow(values)) for x in (200, 400)]
        pictures.append(swapper.swapped(frame, targets, SwapOptions()).pictures.astype(int))
    assert np.abs(pictures[0] - pictures[1]).max() <= (3 if FAMILIES[name].half else 1)


def test_the_stages_loop_reaches_90_per_cent_of_the_bare_session(cuda: Runtime, standins: StandIns) -> None:
    reached = checks.throughput(cuda, standins, checks.Load(HEAVY, frames=48, faces=8, threads=4))
    print(f"swap loop over bare session: {reached:.3f}")
    assert reached >= 0.9


def test_a_batch_gains(cuda: Runtime, standins: StandIns) -> None:
    gain = checks.batch_gain(cuda, standins, HEAVY)
    print(f"16 single runs over one run of 16: {gain:.2f}")
    assert gain > 1.2


def test_out_of_memory_is_survived(cuda: Runtime, standins: StandIns) -> None:
    """Far more rows than any GPU holds at once: halved until they fit, and all of them come back."""
    runtime = Runtime("gpu", batch_elements=10**12)
    session = runtime.session(standins.files("inswapper", Build(width=2048))["model"])
    rows = 8192
    feeds = {"target": np.zeros((rows, 3, 128, 128), np.float32), "source": np.zeros((rows, 512), np.float32)}
    (found,) = runtime.batches(session).run(feeds)
    assert len(found) == rows
