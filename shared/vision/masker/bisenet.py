"""Region masks of the BiSeNet face parsers (yakhyo, trained on CelebAMask-HQ): which pixels are skin, eyes, mouth, ...

Model files: `model`. Parameters: `size` (512), `regions` (names of REGIONS with spaces between; the whole face by
default). Input `input` [n, 3, size, size] RGB, ImageNet mean and deviation; first output [n, 19, size, size], one
logit per class. Knows the runtime.
"""

from __future__ import annotations

import numpy as np

from shared.errors import ConfigError
from shared.imaging.masks import feather
from shared.vision.masker.fitting import fitted
from shared.vision.protocols import Floats, Image, ModelAssets
from shared.vision.runtime import Runtime

REGIONS = {
    "skin": (1,),
    "brows": (2, 3),
    "eyes": (4, 5),
    "glasses": (6,),
    "nose": (10,),
    "mouth": (11,),
    "lips": (12, 13),
}
"""Class numbers of CelebAMask-HQ that belong to a face; the others are background, ears, neck, hair and clothes."""
_CLASSES = 19
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_STD = np.array([0.229, 0.224, 0.225], np.float32)
_SCALE = (1 / (255 * _STD)).reshape(1, 3, 1, 1)
_SHIFT = (-_MEAN / _STD).reshape(1, 3, 1, 1)


class BiSeNet:
    """Masker."""

    sees_swapped = True

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        self._batches = runtime.batches(runtime.session(assets.files["model"]))
        self._size = int(assets.parameters["size"])
        self._classes = classes(str(assets.parameters.get("regions", " ".join(REGIONS))))

    def warm(self) -> None:
        self.mask(np.zeros((1, self._size, self._size, 3), np.uint8))

    def mask(self, crops: Image) -> Floats:
        """uint8 [n, side, side, 3] -> float32 [n, side, side], 1 inside the chosen regions, feathered."""
        masks = np.empty(crops.shape[:3], np.float32)
        if len(crops):
            blob = fitted(crops, self._size)[:, :, :, ::-1].transpose(0, 3, 1, 2) * _SCALE + _SHIFT
            for index, logits in enumerate(self._batches.run({"input": blob})[0]):
                masks[index] = feather(chosen(logits, self._classes), crops.shape[1])
        return masks


def classes(names: str) -> tuple[int, ...]:
    """Class numbers of the named regions. Raises ConfigError for a name that REGIONS does not have."""
    found = names.split()
    if not found or (unknown := sorted(set(found) - set(REGIONS))):
        wrong = repr(unknown[0]) if found else "an empty list"
        raise ConfigError(f"regions: {wrong} is none of {', '.join(REGIONS)}.")
    return tuple(number for name in found for number in REGIONS[name])


def chosen(logits: Floats, numbers: tuple[int, ...]) -> Floats:
    """float32 [19, h, w] -> [h, w], 1 where the strongest class is one of `numbers`, else 0.

    The largest chosen logit against the largest other one says the same as an argmax over all classes, in whole
    planes: 1-3 CPU ms instead of 20 at 512 x 512.
    """
    others = [number for number in range(_CLASSES) if number not in numbers]
    return np.asarray(_strongest(logits, numbers) > _strongest(logits, others), np.float32)


def _strongest(logits: Floats, numbers: tuple[int, ...] | list[int]) -> Floats:
    best: Floats = logits[numbers[0]].copy()
    for number in numbers[1:]:
        np.maximum(best, logits[number], out=best)
    return best
