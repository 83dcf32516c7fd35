"""``python -m theodolite`` is ``theodolite``."""

import sys

from theodolite.cli import main

sys.exit(main())
