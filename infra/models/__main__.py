"""`python -m infra.models`."""

import sys

from infra.models.cli import main

sys.exit(main())
