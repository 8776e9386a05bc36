"""`python -m infra.platform`: see `cli`."""

from __future__ import annotations

import sys

from infra.platform.cli import main

if __name__ == "__main__":
    sys.exit(main())
