"""Become a container's process: `python pod.py <JSON>`, in a mount namespace of its own. Knows the standard library.

The root is read-only and the only one there is; volumes are mounted into it. The user is not root and has no
capabilities, nor a way to get any: what the manifests' securityContext asks for.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPABILITIES = range(41)


class Pod(TypedDict):
    root: str
    user: int
    workdir: str
    mounts: dict[str, tuple[str, bool]]
    """Path in the pod -> folder outside, and whether it is read-only."""
    environ: dict[str, str]
    command: list[str]


def main(pod: Pod) -> None:
    root = Path(pod["root"])
    mount("--bind", root, root)
    mount("-o", "remount,bind,ro", root)
    mount("-t", "proc", "proc", root / "proc")
    mount("--rbind", "/dev", root / "dev")
    for path, (folder, read_only) in pod["mounts"].items():
        mount("--bind", folder, root / path.lstrip("/"))
        if read_only:
            mount("-o", "remount,bind,ro", root / path.lstrip("/"))
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in CAPABILITIES:
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    os.chroot(root)
    os.chdir(pod["workdir"])
    os.setgroups([])
    os.setresgid(pod["user"], pod["user"], pod["user"])
    os.setresuid(pod["user"], pod["user"], pod["user"])
    os.execvpe(pod["command"][0], pod["command"], pod["environ"])


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
