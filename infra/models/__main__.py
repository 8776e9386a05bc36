"""`python -m infra.models`."""

import sys

try:
    from infra.models.cli import main
except ModuleNotFoundError as error:
    sys.exit(f"{error}: `make models` installs into .venv, `. .venv/bin/activate` makes its python the one in use")

sys.exit(main())
