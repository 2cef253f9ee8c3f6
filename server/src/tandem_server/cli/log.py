"""Where log lines go."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from tandem_server.report.words import visible

_Error = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class LineFormatter(logging.Formatter):
    """A message is one line, and what it quotes of a probe or a stranger moves no terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        return visible(super().formatMessage(record))

    def formatException(self, ei: _Error) -> str:  # noqa: N802  logging's name
        return "\n".join(map(visible, super().formatException(ei).splitlines()))


class FewOfAKind(logging.Filter):
    """Of one kind of message (its text before the values go in) so many a minute: strangers and probes must not fill the log. How many were
    left out is said with the next."""

    def __init__(self, most: int = 30, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._now_s = most, now_s
        self._minute = 0
        self._seen: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        minute, kind = int(self._now_s() // 60), f"{record.name} {record.levelname} {record.msg}"
        if minute != self._minute:
            self._minute = minute
            self._left_out = +Counter({one: count - self._most for one, count in self._seen.items()})
            self._seen.clear()
        self._seen[kind] += 1
        if left_out := self._left_out.pop(kind, 0):
            record.msg = f"{record.msg} ({left_out} more like this a minute ago were left out)"
        return self._seen[kind] <= self._most


def line_handler(stream: TextIO) -> logging.Handler:
    """Time, level, part and message onto ``stream``."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(FewOfAKind())
    return handler


def log_to_stderr() -> None:
    """Time, level, part and message. A line that the log's disk does not take is lost, without a traceback."""
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.INFO, handlers=[line_handler(sys.stderr)])
