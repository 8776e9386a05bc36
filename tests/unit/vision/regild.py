"""Write the golden pictures anew and say how far each moved; then look at them.

python -m tests.unit.vision.regild
"""

from __future__ import annotations

import cv2

from shared.models import catalog
from shared.models.cache import ModelCache
from shared.vision.detector.centerface import CenterFace
from shared.vision.finder import find_faces
from shared.vision.landmarker.face_mesh import FaceMesh
from shared.vision.protocols import ModelAssets
from shared.vision.runtime import Runtime
from shared.vision.swapper.mesh import MeshSwapper
from tests.conftest import ROOT
from tests.unit.vision.conftest import Portrait
from tests.unit.vision.test_golden import CASES, GOLDEN, make, ssim


def main() -> None:
    models, runtime = ModelCache(ROOT / ".wakeswap" / "models"), Runtime(threads=1)

    def assets(name: str) -> ModelAssets:
        return ModelAssets(name, models.ensure(catalog.default().model(name)), {})

    detector, landmarker = CenterFace(assets("centerface"), runtime), FaceMesh(assets("face_mesh"), runtime)
    swapper = MeshSwapper(ModelAssets("mesh", {}, {}), runtime)
    image = cv2.imread(str(models.ensure(catalog.default().samples["astronaut"])["astronaut"]), cv2.IMREAD_COLOR)
    portrait = Portrait(image, find_faces(image, detector, landmarker))
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        path = GOLDEN / f"{case}.png"
        new = make(case, portrait, (detector, landmarker, swapper))[1]
        old = cv2.imread(str(path), cv2.IMREAD_COLOR) if path.exists() else None
        cv2.imwrite(str(path), new)
        comparable = old is not None and old.shape == new.shape
        print(f"{case}: {f'ssim {ssim(new, old):.4f}' if comparable else 'new'}")


if __name__ == "__main__":
    main()
