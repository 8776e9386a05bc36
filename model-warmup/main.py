"""Fill the model cache before a function says ready: the init step of every stage with models.

    python model-warmup/main.py <stage, role or model>...     python model-warmup/main.py --all
    python model-warmup/main.py --samples <folder>            python model-warmup/main.py --verify

With `--watch` it fills a node's folder and keeps it filled, until it is told to end; with `--wait` it only waits until
another process has done so, and writes nothing: the two halves of a folder that pods mount read-only.

Exits 0 when every file is in place, 1 when a model cannot be had, 2 for wrong arguments or settings.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
LOOK_SECONDS = 0.1
"""How often a waiting process looks: a look is a small read and a stat a file."""
sys.path.insert(0, str(ROOT))

from shared.errors import ConfigError, WakeswapError  # noqa: E402
from shared.models import build, display  # noqa: E402
from shared.models.cache import ModelCache  # noqa: E402
from shared.models.catalog import Catalog  # noqa: E402
from shared.models.filling import Filler, asked_for  # noqa: E402
from shared.models.progress import Progress, Step  # noqa: E402
from shared.models.spec import ModelSpec  # noqa: E402
from shared.models.tally import Tally  # noqa: E402
from shared.settings import ModelSettings, Settings  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="model-warmup", description="Fill the model cache.")
    parser.add_argument("names", nargs="*", metavar="name", help="stage, role or model")
    parser.add_argument("--all", action="store_true", help="what every stage needs")
    parser.add_argument("--samples", type=Path, metavar="FOLDER", help="put the sample pictures there")
    stay = parser.add_mutually_exclusive_group()
    stay.add_argument("--watch", action="store_true", help="fill, look again every so often, and stay")
    parser.add_argument("--every", type=float, default=30.0, metavar="SECONDS", help="how often --watch looks")
    stay.add_argument("--wait", action="store_true", help="wait until it is filled; write nothing")
    parser.add_argument("--verify", action="store_true", help="read the whole cache, fetch again what is bad")
    arguments = parser.parse_args()
    if not (arguments.names or arguments.all or arguments.samples or arguments.verify):
        parser.error("name a stage, a role or a model, or use --all, --samples or --verify")
    try:
        settings = Settings.from_environment(os.environ)
        models = settings.models
        catalog, cache = build.chosen(models), build.cache(models, refresh=not arguments.wait)
        specs = needed(catalog, [*(catalog.stages if arguments.all else ()), *arguments.names], models.prefetch)
        filler = Filler(models, catalog)
        if arguments.watch:
            watch(settings, filler, specs, arguments.every)
        if arguments.wait:
            tally = Tally()
            wait(cache, specs, tally)
            tell(models, tally)
            return 0
        with display.progress() as shown:
            progress = Tally(shown)
            if arguments.verify:
                verify(catalog, cache, progress)
            filler.fill(cache, specs, progress)
            if specs and models.tag:
                filler.look()
            if arguments.samples:
                copy_samples(catalog, cache, arguments.samples, progress)
        tell(models, progress)
    except WakeswapError as error:
        print(f"model-warmup: {error.code}: {error.detail}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def watch(settings: Settings, filler: Filler, specs: Sequence[ModelSpec], seconds: float) -> NoReturn:
    """Fill, and fetch again what is missing or damaged later, and what a channel stands for by then; for all tenants,
    whose functions cannot fetch here.

    Ends with SIGTERM, at once: every step survives a kill, and an exception would come up in the midst of an import,
    which turns it into another. A source that fails may recover. Each round has its own cache objects: between rounds
    none is held, so that room can be made for a new version.
    """
    from shared.tenancy import directory  # every stage's init step would pay for it

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    known = settings.tenants
    tenants = directory.load(known.tenants, folder=known.folder if Path(known.folder).is_dir() else "")
    while True:
        try:
            with display.progress() as progress:
                filler.fill(build.cache(settings.models, refresh=True), specs, progress)
                filler.fill_for(tenants.everybody(), specs, progress)
        except WakeswapError as error:
            print(f"model-warmup: {error.code}: {error.detail}", file=sys.stderr, flush=True)
        except OSError as error:  # a shared disk that stumbles
            print(f"model-warmup: {error}", file=sys.stderr, flush=True)
        time.sleep(seconds)


def verify(catalog: Catalog, cache: ModelCache, progress: Progress) -> None:
    """What a schedule runs: a hit only looks at sizes and times."""
    from shared.models import audit

    for finding in audit.heal(cache, catalog, progress):
        print(f"model-warmup: {finding.state}: {finding.folder}/{finding.file}", file=sys.stderr)


def tell(settings: ModelSettings, tally: Tally) -> None:
    """What was fetched, for the metrics of the function beside this step."""
    if settings.report:
        tally.leave(Path(settings.report))


def wait(cache: ModelCache, specs: Sequence[ModelSpec], progress: Progress) -> None:
    """How long it may take is the platform's business: a pod has its progress deadline."""
    for spec in specs:
        if cache.find(spec) is None:
            print(f"model-warmup: waiting for {spec.name}", file=sys.stderr, flush=True)
            progress(Step(spec.name, "wait"))
        while cache.find(spec) is None:
            time.sleep(LOOK_SECONDS)
        progress(Step(spec.name, "ready"))


def needed(catalog: Catalog, names: list[str], prefetch: str) -> tuple[ModelSpec, ...]:
    """The models of these stages, roles and models, each once, and of `prefetch` those that the stages may run."""
    found: dict[str, ModelSpec] = {}
    ahead = [name.strip() for name in prefetch.split(",") if name.strip()]
    for name in names:
        is_stage = name in catalog.stages or (ROOT / "functions" / name).is_dir()
        specs = [*catalog.needed_by(name), *asked_for(catalog, name, ahead)] if is_stage else catalog.closure(name)
        found.update({spec.name: spec for spec in specs})
    return tuple(found.values())


def copy_samples(catalog: Catalog, cache: ModelCache, folder: Path, progress: Progress) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for group in catalog.samples.values():
        for path in cache.ensure(group, progress).values():
            shutil.copyfile(path, folder / path.name)


if __name__ == "__main__":
    sys.exit(main())
