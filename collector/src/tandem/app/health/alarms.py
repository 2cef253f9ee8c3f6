"""When something wrong begins and when it is over, with tolerance: one look does not end it, nor, where told, begin it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(slots=True)
class Alarm:
    """``after``: looks in a row that must be bad before it begins; ``over_after``: that must be good before it ends. A look that is
    neither (between two thresholds, or nothing known) breaks no alarm and no peace, only the row."""

    after: int = 1
    over_after: int = 6
    since_ns: int | None = None
    """CLOCK_MONOTONIC of its beginning; None while there is none."""
    text: str = ""
    """What is wrong, as told when it began or since."""
    _bad: int = 0
    _good: int = 0

    def look(
        self, how: Literal["bad", "good", "between"], now_ns: int, text: str = ""
    ) -> Literal["begins", "ends"] | None:
        """What this look makes of it; None when nothing changes. ``text``: what is wrong, when it is."""
        self._bad = self._bad + 1 if how == "bad" else 0
        self._good = self._good + 1 if how == "good" else 0
        if how == "bad" and text:
            self.text = text
        if self.since_ns is None and self._bad >= self.after:
            self.since_ns = now_ns
            return "begins"
        if self.since_ns is not None and self._good >= self.over_after:
            self.since_ns = None
            return "ends"
        return None
