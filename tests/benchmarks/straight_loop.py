"""The peer of bench_video: decode a frame, detect its faces, insightface's INSwapper on each, encode it.

The detector's own five points are used, as insightface does: no mesh is measured here.

python -m tests.benchmarks.straight_loop <clip> <model.onnx> <source picture>
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import av
import cv2
import numpy as np

from shared.models import build
from shared.settings import ModelSettings
from shared.video.quality import rate_factor
from shared.vision.protocols import Detector
from tests.standins.insight import InsightFace, insightface_swapper

FACTOR = str(rate_factor("libx264", 92))
"""What the benchmark's quality stands for."""


def main(clip: Path, model: Path, source: Path) -> None:
    cv2.setNumThreads(2)
    models = build.registry(ModelSettings(cache=Path(".wakeswap/models")))
    detector = models.get("detector", Detector)
    swapper = insightface_swapper(model)
    picture = cv2.imread(str(source))
    assert detector.detect(picture)  # it is loaded and has run
    who = InsightFace.who(np.random.default_rng(0).normal(size=512).astype(np.float32))
    frames, started = 0, time.monotonic()
    with av.open(str(clip)) as read, av.open(str(clip.with_suffix(".naive.mp4")), "w") as written:
        stream = written.add_stream("libx264", rate=25)
        shown = read.streams.video[0]
        stream.width, stream.height, stream.pix_fmt = shown.width, shown.height, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": FACTOR}
        for decoded in read.decode(video=0):
            frame = decoded.to_ndarray(format="bgr24")
            for face in detector.detect(frame):
                kps = face.points.astype(np.float64)
                frame = swapper.get(frame, InsightFace(kps=kps), who, paste_back=True)
            made = av.VideoFrame.from_ndarray(frame, format="bgr24")
            made.pts = decoded.pts
            made.time_base = decoded.time_base
            written.mux(stream.encode(made))
            frames += 1
        written.mux(stream.encode())
    seconds = time.monotonic() - started
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"frames": frames, "fps": frames / seconds, "rss_mb": rss}))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
