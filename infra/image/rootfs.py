"""Put together the whole file system of an image: an interpreter, installed packages, and the few files they need.

    python -m infra.image.rootfs <virtual environment> <its list of parts> <new folder>

Run by the interpreter that the environment was made by. No shell, no package manager and no tools come along. Knows
Python and Debian, nothing of the product.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from infra.image import origins
from infra.image.libraries import needs
from infra.image.root import Root

USER = 65532
TESTS = ("__pycache__", "test", "tests")
"""Folders of packages that only their makers use: a tenth of the image."""
SHELL = ("activate*", "Activate*")
DISPLAY = ("tkinter", "_tkinter*", "idlelib", "turtle*", "pydoc_data")
BUILDING = (
    "venv",
    "site-packages",
    "dist-packages",
    "config-*",
    "ensurepip",
    "lib2to3",
    "_test*",
    "_ctypes_test*",
    "xx*",
)
"""In the standard library: what is for whoever builds Python, or installs with it."""
SYSTEM = ("/etc/ssl/certs/ca-certificates.crt", "/etc/os-release", "/etc/debian_version", "/etc/ld.so.conf")
FILES = {
    "/etc/passwd": f"root:x:0:0::/:\nwakeswap:x:{USER}:{USER}::/nonexistent:\n",
    "/etc/group": f"root:x:0:\nwakeswap:x:{USER}:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
PARTS = "/srv/sbom.cdx.json"


def main(environment: Path, parts: Path, folder: Path) -> int:
    root, stdlib = Root(folder), Path(sysconfig.get_path("stdlib"))
    root.tree(environment, *TESTS, *SHELL)
    root.place(environment / "bin" / "python")
    root.tree(stdlib, *TESTS, *DISPLAY, *BUILDING)
    found = needs(folder)
    if found.missing:
        print(f"rootfs: libraries that this system lacks: {', '.join(sorted(found.missing))}", file=sys.stderr)
        return 1
    for path in [*found.found, *map(Path, SYSTEM)]:
        root.place(path)
    for name, text in FILES.items():
        root.write(name, text)
    root.at(Path("/tmp")).mkdir()  # noqa: S108 (the image's own; every pod has its scratch folder elsewhere)
    root.at(Path("/tmp")).chmod(0o1777)  # noqa: S108
    root.tree(Path("/etc/ld.so.conf.d"))
    subprocess.run(["/sbin/ldconfig", "-r", str(folder)], check=True)
    packages = origins.owners(root.placed)
    origins.leave(packages, root)
    root.write(PARTS, origins.complete(parts, packages))
    return precompile(folder, root.at(environment), root.at(stdlib.resolve()))


def precompile(folder: Path, *trees: Path) -> int:
    """No wake compiles anything, and none looks whether a source has changed: it cannot."""
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder)]
    return subprocess.run([*command, *map(str, trees)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:4])))
