"""The catalogue: the product's own is right, and a wrong one is refused by the key that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from shared.errors import ConfigError, ModelNotFoundError
from shared.models import build, catalog
from shared.models.spec import ModelSpec
from shared.settings import ModelSettings

GOOD = """
[roles]
detector = "a"
[stages]
detect = ["detector"]
[models.a]
role = "detector"
adapter = "package.module:Class"
vendor = "v"
licence = "MIT"
commercial = "yes"
[models.a.files.model]
name = "a.onnx"
size = 3
sha256 = "%s"
sources = ["wheel:x==1#x/a.onnx", "https://example.org/a.onnx"]
[models.a.parameters]
size = 640
""" % ("0" * 64)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], catalog.Catalog]:
    def write_and_load(text: str) -> catalog.Catalog:
        path = tmp_path / "c.toml"
        path.write_text(text, encoding="utf-8")
        return catalog.load(path)

    return write_and_load


def test_a_table_becomes_a_spec(load: Callable[[str], catalog.Catalog]) -> None:
    spec = load(GOOD).model("detector")
    assert (spec.name, spec.role, spec.commercial, spec.parameters) == ("a", "detector", "yes", {"size": 640})
    assert spec.files[0].sources == ("wheel:x==1#x/a.onnx", "https://example.org/a.onnx")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('vendor = "v"', 'vendor = "v"\nvendr = "v"', "models.a: unknown key 'vendr'"),
        ('licence = "MIT"\n', "", "models.a: 'licence' is missing"),
        ('commercial = "yes"', 'commercial = "maybe"', "'commercial' must be one of yes, no, unknown"),
        ("size = 3", "size = 0", "files.model: 'size' must be a positive number"),
        ("size = 3", "size = true", "files.model: 'size' must be a positive number"),
        ('sha256 = "000', 'sha256 = "X00', "'sha256' must be 64 lower-case hex digits"),
        ('name = "a.onnx"', 'name = "../a.onnx"', "'name' must be a plain file name"),
        ("package.module:Class", "package.module.Class", "'adapter' must be of the form \"module:name\""),
        ("wheel:x==1#x/a.onnx", "ftp://x/a.onnx", "'sources': 'ftp://x/a.onnx' is no source"),
        ("size = 3", 'size = 3\nconvert = "m:f"', "'convert' and 'source_sha256' belong together"),
        ("size = 640", "size = [640]", "parameters: 'size' must be a text, a number or a truth value"),
        ('detector = "a"', 'detector = "b"', "no detector that is called 'b'"),
        ('["detector"]', '["detektor"]', "stages.detect: No model is called 'detektor'"),
        ("[roles]", "[rolls]", "unknown key 'rolls'"),
        ("[roles]", "roles", "c.toml:"),
    ],
)
def test_a_wrong_key_is_named(load: Callable[[str], catalog.Catalog], old: str, new: str, named: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(ConfigError) as caught:
        load(GOOD.replace(old, new))
    assert named in caught.value.detail


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ModelNotFoundError, match="centerface, face_mesh"):
        catalog.default().model("nope")


def test_a_setting_chooses_the_model_of_its_role() -> None:
    assert build.chosen(ModelSettings()).model("detector").name == "centerface"
    with pytest.raises(ConfigError, match="no detector that is called 'face_mesh'"):
        build.chosen(ModelSettings(detector="face_mesh"))


def test_settings_and_catalogue_have_the_same_defaults() -> None:
    settings = ModelSettings()
    named = {item.name: getattr(settings, item.name) for item in fields(settings)}
    roles = catalog.default().roles
    assert {role: named[role] for role in roles if role in named} == {r: n for r, n in roles.items() if r in named}
    assert {"detector", "landmarker", "moderator"} <= roles.keys() & named.keys()


def test_every_version_of_a_set_has_its_own_folder(load: Callable[[str], catalog.Catalog]) -> None:
    one, other = load(GOOD).model("a"), load(GOOD.replace("0" * 64, "1" * 64)).model("a")
    assert one.folder.startswith("a-")
    assert one.folder != other.folder


@pytest.mark.parametrize("spec", catalog.default().models.values(), ids=lambda spec: spec.name)
def test_every_adapter_exists(spec: ModelSpec) -> None:
    module, _, name = spec.adapter.partition(":")
    assert callable(getattr(import_module(module), name))


class Recorder:
    """A `Models` that only notes what a stage's setup asks for."""

    def __init__(self) -> None:
        self.models = self
        self.asked: list[str] = []

    def warm(self, *names: str) -> None:
        self.asked += names


@pytest.mark.parametrize("stage", sorted(catalog.default().stages))
def test_warmup_fetches_what_the_stage_warms(stage: str) -> None:
    recorder = Recorder()
    import_module(f"functions.{stage}.main").setup(recorder)
    assert tuple(recorder.asked) == catalog.default().stages[stage]
