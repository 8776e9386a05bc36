"""The catalogue: the product's own is right, and a wrong one is refused by the key that is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from shared.errors import ConfigError, ModelNotFoundError
from shared.models import build, catalog
from shared.models.spec import ModelSpec
from shared.settings import ModelSettings
from shared.vision import protocols
from shared.vision.templates import TEMPLATES

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

DERIVED = """
[models.a.files.e]
name = "e.npy"
from = "model"
convert = "m:f"
[models.a.parameters]"""


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
        ("size = 3", "size = 3\nsource_size = 4", "'source_size' and 'from' need 'convert'"),
        ("size = 3", 'size = 3\nconvert = "m:f"\nfrom = "b"', "either 'sources' or 'from'"),
        ('sources = ["wheel:x==1#x/a.onnx", "https://example.org/a.onnx"]', "", "either 'sources' or 'from'"),
        ("[models.a.parameters]", DERIVED.replace('"model"', '"b"'), "'e' is made from 'b', which is no fetched part"),
        ("[models.a.parameters]", '[models.a.uses]\nx = "b"\n[models.a.parameters]', "No model is called 'b'"),
        ("[models.a.parameters]", '[models.a.uses]\nx = "a"\n[models.a.parameters]', "use each other in a circle"),
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


def test_what_is_not_known_beforehand_is_left_out(load: Callable[[str], catalog.Catalog]) -> None:
    text = GOOD.replace("size = 3\n", "").replace('sha256 = "%s"\n' % ("0" * 64), "")
    model, derived = load(text.replace("[models.a.parameters]", DERIVED)).model("a").files
    assert (model.size, model.sha256, model.download_sha256) == (0, "", "")
    assert (derived.origin, derived.convert, derived.sources) == ("model", "m:f", ())
    assert load(text).model("a").folder != load(GOOD).model("a").folder


def test_files_of_a_folder_are_one_catalogue(tmp_path: Path) -> None:
    head, _, table = GOOD.partition("[models.a]")
    (tmp_path / "a.toml").write_text(head)
    (tmp_path / "b.toml").write_text("[models.a]" + table)
    assert catalog.load(tmp_path).model("detector").name == "a"
    (tmp_path / "a.toml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"b\.toml\.models: 'a' stands in another file too"):
        catalog.load(tmp_path)


@pytest.mark.parametrize(
    ("own", "used", "whole"),
    [
        ("yes", "yes", "yes"),
        ("yes", "no", "no"),
        ("no", "yes", "no"),
        ("yes", "unknown", "unknown"),
        ("unknown", "no", "no"),
        ("no", "unknown", "no"),
    ],
)
def test_the_licence_of_what_a_model_uses_counts(
    load: Callable[[str], catalog.Catalog], own: str, used: str, whole: str
) -> None:
    """Over two steps: a uses b, which uses c."""
    one = GOOD.replace('commercial = "yes"', f'commercial = "{own}"')
    table = GOOD.partition("[models.a]")[2].replace("[models.a", "[models.{0}")
    others = ["[models.b]" + table.format("b") + '[models.b.uses]\nx = "c"\n']
    others.append("[models.c]" + table.format("c").replace('commercial = "yes"', f'commercial = "{used}"'))
    loaded = load(one + '[models.a.uses]\ny = "b"\n' + "\n".join(others))
    assert loaded.commercial("a") == whole
    assert loaded.commercial("detector") == whole


def test_the_products_own_chains() -> None:
    known = catalog.default()
    assert known.model("ghost_1_256").commercial == "unknown"
    assert known.commercial("ghost_1_256") == "no", "fed by the non-commercial ArcFace"
    assert {known.commercial(role) for role in known.roles} == {"yes"}
    assert {known.commercial(spec.name) for stage in known.stages for spec in known.needed_by(stage)} == {"yes"}


ROLES = {name.lower(): kind for name, kind in vars(protocols).items() if getattr(kind, "_is_protocol", False)}


@pytest.mark.parametrize("spec", catalog.default().models.values(), ids=lambda spec: spec.name)
def test_every_table_is_whole(spec: ModelSpec) -> None:
    assert spec.role in ROLES
    assert len({file.name for file in spec.files}) == len(spec.files)
    for file in spec.files:
        assert file.download_sha256 or file.origin or len(file.sources) > 1, "unpinned: more than one address"
    if "template" in spec.parameters:
        assert spec.parameters["template"] in TEMPLATES
    if spec.role == "swapper" and spec.files and "source_size" not in spec.parameters:
        assert spec.uses == {"embedder": "arcface_w600k_r50"}
    if spec.parameters.get("latent") == "emap":
        assert {file.part for file in spec.files} == {"model", "emap"}
    assert ("converter_norm" in spec.parameters) == ("converter" in {file.part for file in spec.files})


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ModelNotFoundError, match="centerface, codeformer"):
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
    assert roles.keys() <= named.keys()


def test_a_role_without_a_default_is_chosen_by_its_setting_alone() -> None:
    plain, chosen = build.chosen(ModelSettings()), build.chosen(ModelSettings(refiner="2dfan4"))
    assert plain.roles.keys().isdisjoint({"refiner", "embedder"})
    assert [spec.name for spec in plain.needed_by("detect")] == ["centerface", "face_mesh"]
    assert [spec.name for spec in chosen.needed_by("detect")] == ["centerface", "face_mesh", "2dfan4"]
    with pytest.raises(ConfigError, match="no embedder that is called 'xseg_1'"):
        build.chosen(ModelSettings(embedder="xseg_1"))


def test_every_version_of_a_set_has_its_own_folder(load: Callable[[str], catalog.Catalog]) -> None:
    one, other = load(GOOD).model("a"), load(GOOD.replace("0" * 64, "1" * 64)).model("a")
    assert one.folder.startswith("a-")
    assert one.folder != other.folder


@pytest.mark.parametrize("spec", catalog.default().models.values(), ids=lambda spec: spec.name)
def test_every_adapter_exists(spec: ModelSpec) -> None:
    """And has the methods of its role's protocol."""
    module, _, name = spec.adapter.partition(":")
    adapter = getattr(import_module(module), name)
    protocol = ROLES[spec.role]
    methods = {method for method in dir(protocol) if not method.startswith("_") and callable(getattr(protocol, method))}
    assert "warm" in methods
    assert methods <= set(dir(adapter))


class Recorder:
    """A `Models` that only notes what a stage's setup asks for."""

    def __init__(self, chosen: bool) -> None:
        self.models = self
        self.asked: list[str] = []
        self.all_chosen = chosen
        self.log = logging.LoggerAdapter(logging.getLogger("test"))

    def chosen(self, role: str) -> str:
        return "a_model" if self.all_chosen else ""

    def warm(self, *names: str) -> None:
        self.asked += names


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("stage", sorted(catalog.default().stages))
def test_warmup_fetches_what_the_stage_warms(stage: str, chosen: bool) -> None:
    """Roles with `?` only where a model is chosen for them."""
    recorder = Recorder(chosen)
    import_module(f"functions.{stage}.main").setup(recorder)
    needs = catalog.default().stages[stage]
    assert recorder.asked == [name.removesuffix("?") for name in needs if chosen or not name.endswith("?")]
