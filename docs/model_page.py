"""docs/models.md: how models are had, and a table of the catalogue."""

from __future__ import annotations

from marking import MADE, code, table

from shared.models import catalog
from shared.models.spec import ModelSpec

_TEXT = """# Models

Every model is one table in `shared/models/catalog/`: its files with addresses, sizes and SHA-256, its numbers, its
licence. The product contains no weights; what a stage needs by default is fetched by `model-warmup`, anything else by

```console
$ python -m infra.models list                  # role, commercial use, licence, size, in the cache or not
$ python -m infra.models show inswapper_128    # addresses, digests, numbers, what it uses
$ python -m infra.models fetch inswapper_128   # with everything it uses
$ python -m infra.models verify                # read the whole cache again; names what has changed, exit code 1
```

each with `--json` for programs. On a cluster a stage's init container takes more names:
`python model-warmup/main.py swap inswapper_128`.

## Digests

A download must have the digest of the catalogue. Where the catalogue has none, that of the first whole download is
written into `models.lock.toml` (beside the cache, or where `WAKESWAP_MODEL_LOCK` says) and other bytes are refused
from then on; keep the file under version control and give it to every machine. The model bucket is asked first, for
`models/sha256/<digest>`: of the file itself, or of the download that it is made from.

Some files are made at fetch time. Graphs that were exported for a batch of one get a free batch, and are kept only if
they compute the same as the original, one by one and two at once; otherwise the original stays, and the manifest says
why. INSwapper's `emap` is taken out of its graph. `manifest.json` in a model's folder of the cache says what lies
there.

## The bucket

`WAKESWAP_MODEL_BUCKET` holds the truth for every node: files by their digests, a small index for each version of a
model, and channels that stand for one version each. Nothing but a channel ever changes.

```console
$ python -m infra.models push inswapper_128 2              # the cache's files, or --file part=path, as version 2
$ python -m infra.models promote inswapper_128 2 stable    # and back: promote inswapper_128 1 stable
$ python -m infra.models list --bucket                     # versions, their channels, tenants' own models
$ python -m infra.models pull inswapper_128@stable         # into this machine's cache
$ python -m infra.models verify --bucket                   # read every file of it again
$ python -m infra.models drop inswapper_128 1              # forget a version that no channel stands for
$ python -m infra.models gc --dry-run                      # files that no version names, a week old or older
```

`WAKESWAP_MODEL_TAG` (a channel or a version) chooses what nodes fetch; a model that the bucket does not have under it
is the catalogue's. The init step asks the bucket what a channel stands for, the function takes the node's answer.
With `--tenant` a version lies in `models/tenants/<tenant>/`, where only that tenant's view of the bucket reaches.

## The cache

A hit costs a small read and a stat a file. A file whose size or time differs from the manifest's is hashed before it is
used, and fetched again if it is another; `python model-warmup/main.py --verify`, on a schedule, reads every byte and
heals what it finds. When the disk is full, the sets that no process uses go, least recently used first, and never more
than is needed. A download that was cut off or killed goes on where it was.

## Licences

`commercial` counts everything a model uses: a ghost under Apache-2.0 that is fed by the non-commercial ArcFace is "no".
The labels are those of the publishers; whether a training set's terms reach further is for you to judge. A tenant's
policy says what its jobs may ask for:

| `licences` | commercial: yes | no | unknown |
| --- | --- | --- | --- |
| `commercial-only` (default) | allowed | refused | refused |
| `research` | allowed | allowed | refused |
| `any` | allowed | allowed | allowed |

A job that asks for a model it may not have is rejected with `model_forbidden`, one that asks for a name that does not
exist in that role with `unknown_model`: by the first stage, before a picture is read; for a learned swapper's masks by
the stage that swaps. What the operator chooses for a role (`WAKESWAP_DETECTOR`, ...) is the operator's own
responsibility.

## The catalogue"""


def page() -> str:
    known = catalog.default()
    parts = [MADE, _TEXT]
    for role in dict.fromkeys(spec.role for spec in known.models.values()):
        specs = [spec for spec in known.models.values() if spec.role == role]
        rows = [_model(spec, known.commercial(spec.name)) for spec in specs]
        parts += [f"### {role}", table(("Model", "Vendor", "Licence", "Commercial", "MB", "Uses"), rows)]
    return "\n\n".join(parts) + "\n"


def _model(spec: ModelSpec, commercial: str) -> tuple[str, ...]:
    size = f"{spec.size / 1e6:.1f}" if spec.size else ""
    return code(spec.name), spec.vendor, spec.licence, commercial, size, ", ".join(map(code, spec.uses.values()))
