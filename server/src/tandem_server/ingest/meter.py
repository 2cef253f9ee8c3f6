"""What this gateway process counts of itself from one point of its series to the next: by probe, and of its writes."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

SLOW_S = 1.0
NOBODY_READS = 499
"""Status of an answer whose reader has gone: it is no refusal."""


@dataclass(slots=True)
class OfProbe:
    """Fields of ``gateway`` (tandem_server.schema.measurements)."""

    requests: int = 0
    lines_accepted: int = 0
    lines_rejected: int = 0
    reason: str | None = None
    received_bytes: int = 0
    answers_429: int = 0
    answers_503: int = 0
    answers_refused: int = 0


@dataclass(slots=True)
class Counts:
    """What was counted. ``waits_s``: of each request with lines, until the database had them. ``requests_at_once``,
    ``bytes_at_once``: the most of one moment."""

    probes: dict[str, OfProbe] = field(default_factory=dict)
    unauthenticated: int = 0
    writes: int = 0
    writes_failed: int = 0
    written_lines: int = 0
    write_s: float = 0.0
    waits_s: array[float] = field(default_factory=lambda: array("d"))
    requests_at_once: int = 0
    bytes_at_once: int = 0

    def of(self, probe: str) -> OfProbe:
        """The counts of this probe, from nothing."""
        found = self.probes.get(probe)
        if found is None:
            found = self.probes[probe] = OfProbe()
        return found


class Meter:
    """Counts. Safe to share between threads; nothing here waits for anything."""

    def __init__(self, saw: Callable[[str], None] = lambda _probe: None) -> None:
        """``saw``: called with whose each request with a good token is."""
        self._lock, self._counts, self.authenticated = threading.Lock(), Counts(), saw

    def unauthenticated(self) -> None:
        """A request came without a good token."""
        with self._lock:
            self._counts.unauthenticated += 1

    def answered(self, probe: str, status: int, received_bytes: int) -> None:
        """A request of ``probe`` got its answer."""
        with self._lock:
            of = self._counts.of(probe)
            of.requests += 1
            of.received_bytes += received_bytes
            of.answers_429 += status == 429
            of.answers_503 += status == 503
            of.answers_refused += 400 <= status < 500 and status not in (429, NOBODY_READS)

    def lines(self, probe: str, accepted: int, rejected: int, reason: str | None, wait_s: float) -> None:
        """A batch was answered ``wait_s`` after it was here. ``reason``: of the last of the rejected, None without one."""
        with self._lock:
            of = self._counts.of(probe)
            of.lines_accepted += accepted
            of.lines_rejected += rejected
            of.reason = of.reason if reason is None else reason
            if accepted:
                self._counts.waits_s.append(wait_s)

    def wrote(self, lines: int, seconds: float) -> None:
        """The database acknowledged one write."""
        with self._lock:
            self._counts.writes += 1
            self._counts.written_lines += lines
            self._counts.write_s += seconds

    def write_failed(self) -> None:
        """The database did not acknowledge one."""
        with self._lock:
            self._counts.writes_failed += 1

    def at_once(self, requests: int, held_bytes: int) -> None:
        """So many requests are being answered now, which hold so many bytes."""
        with self._lock:
            self._counts.requests_at_once = max(self._counts.requests_at_once, requests)
            self._counts.bytes_at_once = max(self._counts.bytes_at_once, held_bytes)

    def take(self) -> Counts:
        """What was counted since the last call; from now on it is counted anew."""
        with self._lock:
            counts, self._counts = self._counts, Counts()
        return counts


def quantile(ordered: array[float], share: float) -> float:
    """The least of the values that at least ``share`` (0 to 1) of ``ordered`` do not exceed; it has one at least."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
