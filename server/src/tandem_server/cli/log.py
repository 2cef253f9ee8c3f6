"""Where log lines go."""

from __future__ import annotations

import logging
import sys
from types import TracebackType

from tandem_server.report.words import visible

_Error = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LineFormatter(logging.Formatter):
    """A message is one line, and what it quotes of a probe or a stranger moves no terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        return visible(super().formatMessage(record))

    def formatException(self, ei: _Error) -> str:  # noqa: N802  logging's name
        return "\n".join(map(visible, super().formatException(ei).splitlines()))


def log_to_stderr() -> None:
    """Time, level, part and message. A line that the log's disk does not take is lost, without a traceback."""
    logging.raiseExceptions = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
