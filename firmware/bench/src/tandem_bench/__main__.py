"""``python -m tandem_bench``."""

import sys

from tandem_bench.cli.main import main

sys.exit(main())
