"""`python -m infra.retention`."""

import sys

try:
    from infra.retention.cli import main
except ModuleNotFoundError as error:
    sys.exit(f"{error}: `make models` installs into .venv, `. .venv/bin/activate` makes its python the one in use")

sys.exit(main())
