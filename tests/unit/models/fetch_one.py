"""A process that fetches one file: `python -m tests.unit.models.fetch_one ROOT SOURCE SIZE SHA256 [LIMIT]`.

LIMIT: `size=<bytes>` of the largest file it may write, or `nobody` to give up root's right to write everywhere.
Prints the file's digest, or the code of the error.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from shared.errors import ModelError
from shared.models.cache import ModelCache
from shared.models.receiving import measure
from shared.models.spec import FileSet, FileSpec

NOBODY = 65534


def main(root: str, source: str, size: str, sha256: str, limit: str = "") -> None:
    if limit == "nobody" and os.getuid() == 0:
        os.setuid(NOBODY)
    elif limit.startswith("size="):
        largest = int(limit.removeprefix("size="))
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    file = FileSpec(part="model", name="model.bin", size=int(size), sha256=sha256, sources=(source,))
    try:
        paths = ModelCache(Path(root)).ensure(FileSet(name="sample", licence="none", files=(file,)))
    except ModelError as error:
        print(error.code)
    else:
        print(measure(paths["model"]).sha256)


if __name__ == "__main__":
    main(*sys.argv[1:])
