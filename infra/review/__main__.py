"""`python -m infra.review`."""

import sys

try:
    from infra.review.cli import main
except ModuleNotFoundError as error:
    sys.exit(f"{error}: `make models` installs into .venv, `. .venv/bin/activate` makes its python the one in use")

sys.exit(main())
