"""Real adapters and sample faces, made once a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2
import pytest

from shared.vision.detector.centerface import CenterFace
from shared.vision.finder import find_faces
from shared.vision.landmarker.face_mesh import FaceMesh
from shared.vision.moderator.open_nsfw import OpenNsfw
from shared.vision.protocols import FoundFace, Image, ModelAssets
from shared.vision.runtime import Runtime
from shared.vision.swapper.mesh import MeshSwapper

Assets = Callable[[str], ModelAssets]
Pictures = Callable[[str], Image]
FACE_DATA = Path(__file__).parents[2] / "data" / "face"


@dataclass(frozen=True)
class Portrait:
    """A picture and the faces in it, from left to right."""

    image: Image
    faces: list[FoundFace]


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    return Runtime(threads=1)


@pytest.fixture(scope="session")
def assets(model_files: Callable[[str], Mapping[str, Path]]) -> Assets:
    return lambda name: ModelAssets(name, model_files(name), {})


@pytest.fixture(scope="session")
def detector(assets: Assets, runtime: Runtime) -> CenterFace:
    return CenterFace(assets("centerface"), runtime)


@pytest.fixture(scope="session")
def landmarker(assets: Assets, runtime: Runtime) -> FaceMesh:
    return FaceMesh(assets("face_mesh"), runtime)


@pytest.fixture(scope="session")
def moderator(assets: Assets, runtime: Runtime) -> OpenNsfw:
    return OpenNsfw(assets("open_nsfw"), runtime)


@pytest.fixture(scope="session")
def swapper(runtime: Runtime) -> MeshSwapper:
    return MeshSwapper(ModelAssets("mesh", {}, {}), runtime)


@pytest.fixture(scope="session")
def picture(sample: Callable[[str], Path]) -> Pictures:
    """`picture("t1")` a sample, `picture("one_face.jpg")` a file of tests/data/face."""

    def load(name: str) -> Image:
        path = FACE_DATA / name if "." in name else sample(name)
        image = cv2.imread(str(path), cv2.IMREAD_COLOR)
        assert image is not None, path
        return image

    return load


@pytest.fixture(scope="session")
def portrait(picture: Pictures, detector: CenterFace, landmarker: FaceMesh) -> Callable[[str], Portrait]:
    """The picture of that name with its faces; read-only, shared by all tests."""
    known: dict[str, Portrait] = {}

    def find(name: str) -> Portrait:
        if name not in known:
            image = picture(name)
            image.setflags(write=False)
            known[name] = Portrait(image, find_faces(image, detector, landmarker))
        return known[name]

    return find
