"""The commands that work on the bucket: push, pull, promote, drop, gc, and list and verify with --bucket."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

from infra.models.publishing import Publisher, derived, garbage, listed, owners
from shared.errors import ConfigError, JsonValue, ModelNotFoundError
from shared.models import display
from shared.models.bucket import ModelBucket, base, said
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.index import Index, IndexedFile
from shared.settings import ModelSettings
from shared.storage.open import open_store
from shared.storage.protocol import ObjectStore

DAYS = 86400.0


def opened(settings: ModelSettings) -> ObjectStore:
    if not settings.bucket:
        raise ConfigError("WAKESWAP_MODEL_BUCKET names no bucket.")
    return open_store(settings.bucket)


def push(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache, settings: ModelSettings) -> int:
    spec = catalog.model(arguments.name)
    given = dict(_part_and_path(text) for text in arguments.file)
    with display.progress() as progress:
        files = given or cache.ensure(spec, progress)
        if set(files) != {file.part for file in spec.files}:
            raise ConfigError(f"{spec.name} has the parts {', '.join(file.part for file in spec.files)}.")
        made = Publisher(opened(settings), arguments.tenant).push(spec.name, arguments.version, files, progress)
    return _said(arguments, {"pushed": f"{made.name}@{made.version}", "index": made.digest})


def pull(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache, settings: ModelSettings) -> int:
    """Into the cache, from the bucket alone."""
    store = opened(settings)
    mine = ModelCache(cache.root, store, cache.lock.path, tenant=arguments.tenant)
    with display.progress() as progress:
        for text in arguments.names:
            name, _, tag = text.partition("@")
            spec = catalog.model(name)
            found = ModelBucket(store, arguments.tenant).resolve(spec.name, tag or settings.tag)
            if found is None:
                raise ModelNotFoundError(f"The bucket has no {spec.name}@{tag or settings.tag}.")
            for path in mine.ensure(found[0].apply(spec), progress).values():
                print(path)
    return 0


def promote(arguments: argparse.Namespace, catalog: Catalog, _: ModelCache, settings: ModelSettings) -> int:
    name = catalog.model(arguments.name).name
    pointer = Publisher(opened(settings), arguments.tenant).promote(name, arguments.version, arguments.channel)
    return _said(arguments, {"promoted": f"{name}@{pointer.version}", "channel": pointer.channel})


def drop(arguments: argparse.Namespace, catalog: Catalog, _: ModelCache, settings: ModelSettings) -> int:
    name = catalog.model(arguments.name).name
    Publisher(opened(settings), arguments.tenant).drop(name, arguments.version)
    return _said(arguments, {"dropped": f"{name}@{arguments.version}"})


def gc(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache, settings: ModelSettings) -> int:
    store, count, size, now = opened(settings), 0, 0, time.time()
    known = {digest for digest, _ in cache.lock.read().values()}
    for file in (file for spec in catalog.models.values() for file in spec.files):
        known |= {file.sha256, file.source_sha256} - {""}
    for info in list(garbage(store, now - arguments.grace_days * DAYS, known, now - arguments.derived_days * DAYS)):
        if not arguments.json:
            print(f"{'would remove' if arguments.dry_run else 'removed'}: {info.key} ({info.size} bytes)")
        if not arguments.dry_run:
            with said(info.key):
                store.delete(info.key)
        count, size = count + 1, size + info.size
    return _said(arguments, {"objects": count, "bytes": size, "removed": not arguments.dry_run})


def list_bucket(arguments: argparse.Namespace, settings: ModelSettings) -> int:
    """Every version with the channels that stand for it."""
    store, rows = opened(settings), list[JsonValue]()
    for owner in owners(store):
        publisher = Publisher(store, owner)
        pointers = list(publisher.pointers())
        for found in publisher.indexes():
            channels = [item.channel for item in pointers if (item.name, item.version) == (found.name, found.version)]
            size = sum(file.size for file in found.files.values())
            rows.append({"name": found.name, "version": found.version, "channels": [*channels], "size": size,
                         "tenant": owner, "digest": found.digest})  # fmt: skip
            if not arguments.json:
                print("\t".join([found.name, found.version, ",".join(channels), f"{size / 1e6:.1f} MB", owner]))
    return _said(arguments, {"versions": rows}) if arguments.json else 0


def verify_bucket(arguments: argparse.Namespace, settings: ModelSettings) -> int:
    """Read every object that an index or a derived document names; 1 when one is missing or not what its name says."""
    store, bad, checked = opened(settings), list[JsonValue](), 0
    for owner in owners(store):
        publisher = Publisher(store, owner)
        for title, file in _named(publisher):
            state, checked = publisher.state(file), checked + 1
            if state != "ok":
                bad.append({"model": title, "file": file.name, "state": state})
                if not arguments.json:
                    print(f"{state}: {title}: {file.name}")
    _said(arguments, {"checked": checked, "bad": bad if arguments.json else len(bad)})
    return int(bool(bad))


def _named(publisher: Publisher) -> Iterator[tuple[str, IndexedFile]]:
    """What each file of an owner belongs to, and the file."""
    for found in publisher.indexes():
        yield from ((_title(found), file) for file in found.files.values())
    for info in listed(publisher.store, f"{base(publisher.owner)}derived/"):
        made = derived(publisher.store, info)
        yield from ((info.key, file) for file in (made.files.values() if made else ()))


def _title(found: Index) -> str:
    return f"{found.name}@{found.version}" + (f" of {found.owner}" if found.owner else "")


def _part_and_path(text: str) -> tuple[str, Path]:
    part, _, path = text.partition("=")
    if not path or not Path(path).is_file():
        raise ConfigError(f"{text!r} is not of the form part=file.")
    return part, Path(path)


def _said(arguments: argparse.Namespace, facts: dict[str, JsonValue]) -> int:
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        print(", ".join(f"{name} {value}" for name, value in facts.items()))
    return 0
