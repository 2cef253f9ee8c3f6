"""Signal drops found against the drops that the polls could see, by size.

A poll a second compares two moments; what falls and rises again between them is no drop to it, as it was none to the paper's
collector. So the true drops are those of the played RSRP at the very moments of the polls, and what was played beside them is
counted apart. A modem answers in whole decibels, rounded down: an event whose true change is a decibel smaller than the
threshold is not false.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tandem_server.analysis.handovers import TOLERANCE_S, FoundEvent
from tandem_server.analysis.truth import Array, Level, TrueDrop

SIZES = (("6-8", 6.0, 8.0), ("8-12", 8.0, 12.0), ("12+", 12.0, float("inf")))
"""Name, least and first too large, in dB of fall. The paper tells falls up to 8 dB from larger ones."""


LEAST_DB = 6.0
ROUNDING_DB = 1.0
"""Two values rounded down to whole decibels differ by less than this from what they were."""
SUCCESSIVE_S = 2.5


@dataclass(frozen=True, slots=True)
class DropScore:
    """``found`` and ``missed`` part the true drops; ``false_events`` have no true drop near."""

    found: list[TrueDrop]
    missed: list[TrueDrop]
    false_events: list[FoundEvent]

    @property
    def true(self) -> int:
        """True drops while the modem was polled."""
        return len(self.found) + len(self.missed)


def by_size(changes_db: Iterable[float]) -> dict[str, int]:
    """How many falls of each size; the sign of a change does not matter, falls below 6 dB are in none."""
    counts = {name: 0 for name, _, _ in SIZES}
    for change in changes_db:
        for name, low, high in SIZES:
            if low <= abs(change) < high:
                counts[name] += 1
    return counts


def at_polls(
    operator: str, level: Level, begun_s: Array, ended_s: Array, least_db: float = LEAST_DB, *, surely: bool = True
) -> list[TrueDrop]:
    """Falls of ``least_db`` or more between two successive polls as the RSRP was played; each at the later poll.

    A modem reads its level at some moment between a poll's beginning and its end (seconds, ascending). ``surely``: only falls that
    were large enough whichever moments those were; else those that may have been. Polls more than ``SUCCESSIVE_S`` apart are not
    successive, as for the collector's detector.
    """
    inside = (begun_s >= level.t_s[0]) & (ended_s <= level.t_s[-1] + SUCCESSIVE_S)
    begun, ended = begun_s[inside], ended_s[inside]
    if len(begun) < 2:
        return []
    # The value written for 0.3 s holds from 0.3 s on; a poll is shorter than two ticks, so its ends see all its values.
    first, last = (level.rsrp_dbm[np.searchsorted(level.t_s, t + 1e-6, side="right") - 1] for t in (begun, ended))
    low, high = np.minimum(first, last), np.maximum(first, last)
    change = high[1:] - low[:-1] if surely else low[1:] - high[:-1]
    hit = (change <= -least_db) & (np.diff(begun) <= SUCCESSIVE_S)
    return [TrueDrop(float(t), operator, float(c)) for t, c in zip(begun[1:][hit], change[hit], strict=True)]


def score(
    true: Sequence[TrueDrop],
    events: Sequence[FoundEvent],
    nearly: Sequence[TrueDrop] = (),
    tolerance_s: float = TOLERANCE_S,
) -> DropScore:
    """Match by operator and time. ``nearly``: falls a little below the threshold, for which an event is not false."""

    def near(operator: str, t: float, others: Iterable[TrueDrop | FoundEvent]) -> bool:
        return any(o.operator == operator and abs(o.t_s - t) <= tolerance_s for o in others)

    found = [d for d in true if near(d.operator, d.t_s, events)]
    missed = [d for d in true if not near(d.operator, d.t_s, events)]
    false = [e for e in events if not near(e.operator, e.t_s, [*true, *nearly])]
    return DropScore(found, missed, false)
