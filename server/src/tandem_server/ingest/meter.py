"""``gateway`` and ``gateway_process``: what this process counts of itself, by probe and of its writes, written at the end of each minute;
and which probes it saw.

Each process writes its own, so nothing has to be put together and a process that dies takes a minute of counts with it at most. Two
starts of one process in one minute must not write over each other: the points of a start lie on one fraction of a second of its own.
"""

from __future__ import annotations

import logging
import random
import resource
import sqlite3
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from tandem.schema.line_protocol import parse
from tandem_server.periodic import Periodic, own_line, put
from tandem_server.quantile import nearest_rank
from tandem_server.registry import Hour, Registry, late_hours
from tandem_server.store import SeriesStore

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


_LOG = logging.getLogger("tandem.gateway")
_S = 10**9
_MOST_HELD = 100_000
_PAGE_BYTES = resource.getpagesize()


class GatewaySeries(Periodic):
    """``process``: this one's number, from 1. What a database that is away does not
    take is held, the newest 100,000 lines, and written when it is back; ``late`` gets the hours that get lines late by that."""

    at_once, at_end, aligned = False, True, True

    def __init__(
        self,
        store: SeriesStore,
        meter: Meter,
        process: int,
        period_s: int = 60,
        late: Callable[[set[Hour], int], None] = lambda _hours, _now: None,
    ) -> None:
        super().__init__("gateway-series", period_s)
        self._late = late
        self._store, self._meter, self._tags = store, meter, {"process": str(process)}
        self._fraction_ns = random.randrange(_S)
        self._held: deque[str] = deque()
        self._began = self._since_s = time.monotonic()
        self._cpu_s = time.process_time()
        self._last_utc_ns = 0
        self._at_utc_ns = self._minute(time.time_ns())

    def turn(self) -> None:
        """The points of what was counted since the last call, and those that are held. StoreDown, sqlite3.Error: they stay held."""
        self._held.extend(self._lines(self._meter.take()))
        if (over := len(self._held) - _MOST_HELD) > 0:
            _LOG.warning("%d points of the gateway's own series are given up: the database is away", over)
            for _ in range(over):
                self._held.popleft()
        lines = list(self._held)
        put(self._store, lines)
        now_utc_ns = time.time_ns()
        of_probes = [(parse(line).tags["probe"], line) for line in lines if line.startswith("gateway,")]
        hours = set().union(*(late_hours(probe, [line], now_utc_ns) for probe, line in of_probes))
        if hours:
            self._late(hours, now_utc_ns)
        self._held.clear()

    def _lines(self, counts: Counts) -> list[str]:
        now_s, cpu_s = time.monotonic(), time.process_time()
        at = self._last_utc_ns = max(
            self._at_utc_ns + self._fraction_ns, self._last_utc_ns + 1
        )  # a clock may be set back
        found = [
            own_line("gateway", {"probe": probe, **self._tags}, asdict(of), at) for probe, of in counts.probes.items()
        ]
        of_process = {
            "period_s": now_s - self._since_s,
            "strangers": counts.unauthenticated,
            "writes": counts.writes,
            "writes_failed": counts.writes_failed,
            "written_lines": counts.written_lines,
            "write_s": counts.write_s,
            "requests_at_once": counts.requests_at_once,
            "bytes_at_once": counts.bytes_at_once,
            "rss_bytes": resident_bytes(),
            "cpu_s": cpu_s - self._cpu_s,
            "uptime_s": now_s - self._began,
            **_waits(counts.waits_s),
        }
        found.append(own_line("gateway_process", self._tags, of_process, at))
        self._since_s, self._cpu_s = now_s, cpu_s
        self._at_utc_ns = self._minute(time.time_ns())
        return [line for line in found if line is not None]

    def _minute(self, utc_ns: int) -> int:
        period_ns = int(self.period_s) * _S
        return utc_ns // period_ns * period_ns


def _waits(waits_s: array[float]) -> dict[str, float | int | None]:
    """What took how long; nothing but the count where there was no request."""
    ordered = [1e3 * wait_s for wait_s in sorted(waits_s)]
    return {
        "acknowledged_requests": len(waits_s),
        "slow_requests": sum(wait_s > SLOW_S for wait_s in waits_s),
        "acknowledged_median_ms": nearest_rank(ordered, 0.5),
        "acknowledged_p95_ms": nearest_rank(ordered, 0.95),
        "acknowledged_most_ms": nearest_rank(ordered, 1.0),
    }


def resident_bytes() -> int | None:
    """Of this process now, of /proc/self/statm (proc(5)); None where there is none."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123  (a file of the kernel, each minute)
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None


# --- Who was seen -------------------------------------------------------------------------------------------------------

_LAST_SEEN_S = 10.0


class LastSeen(Periodic):
    """``note`` from any thread, never blocks for the disk. What is noted at its end is written too."""

    at_once, at_end = False, True

    def __init__(self, registry: Registry, period_s: float = _LAST_SEEN_S) -> None:
        super().__init__("last seen", period_s)
        self._registry = registry
        self._noted: dict[str, int] = {}
        self._lock = threading.Lock()

    def note(self, probe: str) -> None:
        """A request with this probe's token came."""
        with self._lock:
            self._noted[probe] = time.time_ns()

    def turn(self) -> None:
        """Write what was noted; sqlite3.Error: it stays noted."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            self._registry.seen.note(noted)
        except sqlite3.Error:
            with self._lock:
                self._noted = {**noted, **self._noted}
            raise
