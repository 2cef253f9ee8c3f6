"""What became of one path's questions, one an instant. Pure: times come in, outcomes go out; all are CLOCK_MONOTONIC ns."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

LATE_NS = 2_000_000_000
"""An answer that takes longer is late."""

LOST_NS = 10_000_000_000
"""A question without an answer for so long is lost, whatever comes afterwards."""

AGAIN_NS = 60_000_000_000
"""While a path is not measured, one record in so long says why."""

_FINE_NS = 100_000_000
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question, as a ``round_trip`` record has it; ``instant_ns``: the record's time. Absent is None."""

    instant_ns: int
    sequence: int
    outcome: str
    beside_run: bool
    rtt_ms: float | None = None
    sent_after_ms: float | None = None
    duplicates: int | None = None
    too_late: int | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    instant_ns: int
    sent_ns: int
    beside_run: bool


class Questions:
    """One path's. ``sequence`` rises from call to call of ``sent`` and ``not_asked``."""

    def __init__(self) -> None:
        self._open: dict[int, _Question] = {}
        self._closed: OrderedDict[int, str] = OrderedDict()
        self._duplicates = self._too_late = 0
        self._standing: tuple[str, int] | None = None

    def sent(self, sequence: int, instant_ns: int, sent_ns: int, *, beside_run: bool) -> None:
        """A question went out."""
        self._open[sequence] = _Question(instant_ns, sent_ns, beside_run)
        self._standing = None

    def down(self, sequence: int, instant_ns: int, *, beside_run: bool) -> Outcome:
        """None could be sent: the path was not up."""
        self._standing = None
        return Outcome(instant_ns, sequence, "down", beside_run)

    def not_asked(self, sequence: int, instant_ns: int, why: str, *, beside_run: bool) -> Outcome | None:
        """None was sent, and that says nothing of the path. None: that was told less than a minute ago."""
        if self._standing is not None and self._standing[0] == why and instant_ns - self._standing[1] < AGAIN_NS:
            return None
        self._standing = why, instant_ns
        return Outcome(instant_ns, sequence, why, beside_run)

    def heard(self, sequence: int, arrived_ns: int, server_ns: int) -> Outcome | None:
        """An answer came; ``server_ns``: how long the server had it. None where its question is decided, or was never asked."""
        question = self._open.get(sequence)
        if question is None:
            became = self._closed.get(sequence)
            self._duplicates += became in ("answered", "late")
            self._too_late += became == "lost"
            return None
        took_ns = arrived_ns - question.sent_ns
        if took_ns > LOST_NS:
            self._too_late += 1
            return self._close(sequence, "lost")
        rtt_ms = round(max(0, took_ns - max(0, server_ns)) / 1e6, 3)
        return self._close(sequence, "late" if took_ns > LATE_NS else "answered", rtt_ms)

    def overdue(self, now_ns: int) -> list[Outcome]:
        """Those that are lost by now."""
        lost = [sequence for sequence, question in self._open.items() if now_ns - question.sent_ns > LOST_NS]
        return [self._close(sequence, "lost") for sequence in lost]

    def unserved(self, before_ns: int) -> list[Outcome]:
        """The server had nobody for those that went out before and are not decided: they tell nothing of the path."""
        nobodys = [sequence for sequence, question in self._open.items() if question.sent_ns < before_ns]
        return [self._close(sequence, "unserved") for sequence in nobodys]

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest question that waits for an answer went out; None when none does."""
        return min((question.sent_ns for question in self._open.values()), default=None)

    def _close(self, sequence: int, outcome: str, rtt_ms: float | None = None) -> Outcome:
        question = self._open.pop(sequence)
        self._closed[sequence] = outcome
        if len(self._closed) > _REMEMBERED:
            self._closed.popitem(last=False)
        after_ns = question.sent_ns - question.instant_ns
        decided = Outcome(
            question.instant_ns,
            sequence,
            outcome,
            question.beside_run,
            rtt_ms,
            round(after_ns / 1e6, 3) if after_ns > _FINE_NS else None,
            self._duplicates or None,
            self._too_late or None,
        )
        self._duplicates = self._too_late = 0
        return decided
