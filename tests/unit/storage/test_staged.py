"""What the folder store has not yet made visible: a dead writer's is swept, a living one's is not."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from shared.storage.local import LocalStore

WRITER = """
import os, sys
from pathlib import Path
from shared.storage import local
store = local.LocalStore(Path(sys.argv[1]))
def die(fd, data):
    os.write(fd, data)
    os.kill(os.getpid(), 9)
local._fill = die
store.put("tenants/demo/results/a.jpg", b"a picture")
"""


def staged(root: Path) -> list[Path]:
    return list((root / ".store/tmp").iterdir())


def test_a_killed_writer_leaves_its_picture_only_until_the_next_start(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], cwd=root, check=False).returncode == -9
    (file,) = staged(tmp_path)
    assert file.read_bytes() == b"a picture"
    LocalStore(tmp_path)
    assert not staged(tmp_path)


def test_a_living_writer_is_let_alone(tmp_path: Path) -> None:
    """Many writers, and somebody who starts all the time."""
    store, stop = LocalStore(tmp_path), threading.Event()

    def starts() -> None:
        while not stop.is_set():
            LocalStore(tmp_path)

    sweeper = threading.Thread(target=starts)
    sweeper.start()
    try:
        for index in range(200):
            store.put(f"tenants/demo/results/{index}.jpg", b"a picture")
    finally:
        stop.set()
        sweeper.join()
    assert len(store.list("tenants/").objects) == 200
    assert not staged(tmp_path)
