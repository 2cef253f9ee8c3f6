"""What people should know of, told once where it happens again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass

TELL_S = 60.0
"""What repeats is told as a sum once in so long: each notice becomes a record itself."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something people should know: ``kind`` is one of ``schema.metrics.EVENT_KINDS``."""

    kind: str
    detail: str


class Notices:
    """Not safe for several threads: the spool locks."""

    def __init__(self) -> None:
        self._waiting: list[Notice] = []
        self._sums: dict[tuple[str, str], tuple[int, str]] = {}
        self._told_s: dict[tuple[str, str], float] = {}

    def say(self, kind: str, detail: str) -> None:
        """Something that happens seldom."""
        self._waiting.append(Notice(kind, detail))

    def add(self, kind: str, count: int, what: str, example: str = "") -> None:
        """Something that may happen every second: told as ``count``, ``what`` and the first ``example``."""
        if count:
            before, first = self._sums.get((kind, what), (0, example))
            self._sums[kind, what] = before + count, first

    def collect(self) -> list[Notice]:
        """What is to be told now. A sum that is never told is in the counts all the same."""
        now_s = time.monotonic()
        for key in list(self._sums):
            if now_s - self._told_s.get(key, -TELL_S) >= TELL_S:
                self._told_s[key] = now_s
                count, example = self._sums.pop(key)
                self._waiting.append(Notice(key[0], f"{count} {key[1]}{f', the first: {example}' if example else ''}"))
        found, self._waiting = self._waiting, []
        return found
