"""How far it is, on a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_EVERY_S = 0.2


class Bar:
    """One line that is written over, and left standing at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = self._next = 0.0
        self._done = 0
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def show(self, done: int) -> None:
        """``done`` bytes so far."""
        now = time.monotonic()
        self._began = self._began or now
        self._done = done
        if sys.stderr.isatty() and now >= self._next:
            self._next = now + _EVERY_S
            self._line("")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._line("\n")

    def _line(self, end: str) -> None:
        self._shown = True
        seconds = max(time.monotonic() - self._began, 0.001)
        print(
            f"\r{self._what} {self._done / 1e6:,.0f} MB, {self._done / 1e6 / seconds:.0f} MB/s ",
            end=end,
            file=sys.stderr,
            flush=True,
        )
