"""`python -m lengen` is `lengen`."""

import sys

from lengen.cli import main

sys.exit(main())
