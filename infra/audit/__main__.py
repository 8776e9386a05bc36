"""`python -m infra.audit`."""

import sys

from infra.audit.cli import main

sys.exit(main())
