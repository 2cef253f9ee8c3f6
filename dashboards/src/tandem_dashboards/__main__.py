"""``python -m tandem_dashboards``."""

from __future__ import annotations

import sys

from tandem_dashboards.cli import main

if __name__ == "__main__":
    sys.exit(main())
