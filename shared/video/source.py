"""A file by its descriptor: positional reads that no other reader of the same file disturbs, and no way to another.

Knows the operating system only.
"""

from __future__ import annotations

import os


class Source:
    """What libraries ask of a file that they read. The descriptor stays the caller's."""

    name = ""
    """No library can tell what lies beside it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._place = 0
        self.size = os.fstat(descriptor).st_size

    def at(self, place: int, size: int) -> bytes:
        """Bytes from `place` on; fewer only where the file ends."""
        found = b""
        while len(found) < size:
            block = os.pread(self._descriptor, size - len(found), place + len(found))
            if not block:
                break
            found = found + block if found else block
        return found

    def read(self, size: int = -1) -> bytes:
        found = self.at(self._place, self.size - self._place if size < 0 else size)
        self._place += len(found)
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self.size}[whence]
        self._place = max(0, base + offset)
        return self._place

    def tell(self) -> int:
        return self._place
