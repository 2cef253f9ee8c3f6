"""Signal drops found against drops played, by size.

A true drop is found when the same operator has an event within the tolerance on either side (the truth stamps the steepest
moment of a fall, a poll may lie before or after it). One long fall may give several events: they are not false.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tandem_server.analysis.handovers import TOLERANCE_S, FoundEvent
from tandem_server.analysis.truth import TrueDrop

SIZES = (("6-8", 6.0, 8.0), ("8-12", 8.0, 12.0), ("12+", 12.0, float("inf")))
"""Name, least and first too large, in dB of fall. The paper tells falls up to 8 dB from larger ones."""


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


def score(true: Sequence[TrueDrop], events: Sequence[FoundEvent], tolerance_s: float = TOLERANCE_S) -> DropScore:
    """Match by operator and time."""

    def near(operator: str, t: float, others: Iterable[TrueDrop | FoundEvent]) -> bool:
        return any(o.operator == operator and abs(o.t_s - t) <= tolerance_s for o in others)

    found = [d for d in true if near(d.operator, d.t_s, events)]
    missed = [d for d in true if not near(d.operator, d.t_s, events)]
    false = [e for e in events if not near(e.operator, e.t_s, true)]
    return DropScore(found, missed, false)
