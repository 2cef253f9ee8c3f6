"""Where log lines go."""

from __future__ import annotations

import logging
import sys


def log_to_stderr() -> None:
    """Log lines with UTC times."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
