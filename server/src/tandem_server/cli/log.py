"""Where log lines go."""

from __future__ import annotations

import logging
import sys


def log_to_stderr() -> None:
    """Time, level, part and message. A line that the log's disk does not take is lost, without a traceback."""
    logging.raiseExceptions = False
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
