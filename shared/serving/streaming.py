"""A stored picture as the answer to a request, whatever its size in memory of a piece. Knows flask and the store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO, cast

from flask import Response

from shared.events.payloads import ObjectRef
from shared.storage.protocol import ObjectStore

_CHUNK = 65_536


def picture(store: ObjectStore, image: ObjectRef) -> Response:
    """By way of a file without a name: neither whoever hangs up nor a crash leaves it behind.

    Raises ObjectNotFoundError before anything is answered.
    """
    with ExitStack() as undo:
        file = undo.enter_context(cast("BinaryIO", tempfile.TemporaryFile()))  # noqa: SIM115 - closed with the response

        def take(_: int, piece: bytes) -> None:
            file.write(piece)

        store.read_range(image.key, 0, image.size, take)
        file.seek(0)
        undo.pop_all()
    response = Response(_chunks(file), content_type=image.content_type)
    response.content_length = image.size
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Disposition"] = f'attachment; filename="{image.key.rpartition("/")[2]}"'
    response.call_on_close(file.close)  # when nobody asks for the first byte
    return response


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
