"""`python -m infra.local`."""

import sys

try:
    from infra.local.cli import main
except ModuleNotFoundError as error:
    sys.exit(f"{error}: `make models` installs into .venv, `. .venv/bin/activate` makes its python the one in use")

sys.exit(main())
