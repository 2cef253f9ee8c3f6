"""Series of the server's own that its worker writes, once a minute.

- ``expected`` and ``probe_state``: a point for every registered, unrevoked probe, so that silence can be alarmed for months.
- ``ledger``, ``ledger_records`` and ``server_traces``: what was promised and what arrived, by probe and campaign. Neither the
  months that the database holds nor the runs that are settled cost anything: see ``RunningTotals``. What has to be counted at all
  is counted for a few seconds a minute at the most; the rest waits for the next one.
- ``server_health`` and ``server_disk``: the machine that the worker is on, as its kernel reports it (proc(5), statvfs(3)). What
  it does not report is None.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tandem.schema.record import Value
from tandem_server import __version__
from tandem_server.ledger.accounts import Accounts
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.running_totals import RunningTotals
from tandem_server.ledger.states import Tolerances
from tandem_server.ledger.watching import AtWork, ProbeNow, at_work, kept, probes_now
from tandem_server.periodic import PERIOD_S, OwnSeries, own_line, put
from tandem_server.registry import Registry
from tandem_server.schema.measurements import PROBE_STATES
from tandem_server.store import QueryError, SeriesStore

_LOG = logging.getLogger("tandem.worker")
_NOT_ONLINE = ("silent", "never_seen", "revoked")
"""What such a probe is at nobody knows."""


class ExpectedSeries(OwnSeries):
    """``expected`` and ``probe_state``."""

    def __init__(
        self, registry: Registry, store: SeriesStore, tolerances: Tolerances, period_s: int = PERIOD_S
    ) -> None:
        super().__init__("probe states", period_s)
        self._registry, self._store, self._tolerances = registry, store, tolerances

    def once(self, now_utc_ns: int) -> None:
        """See ``OwnSeries``."""
        at_utc_ns = self.whole(now_utc_ns)
        try:
            now = probes_now(self._registry, RecordCounts(self._store), self._tolerances, now_utc_ns)
            online = {one.probe.name for one in now if one.state.state not in _NOT_ONLINE}
            work = at_work(self._registry, self._store, online, now_utc_ns)
        except QueryError as error:
            _LOG.warning("no states of probes, only who was seen: %s", error)
            now, work = [], {}
        lines = self._seen(now_utc_ns, at_utc_ns)
        for one in now:
            if one.state.state != "revoked":
                lines.append(_state_line(one, work.get(one.probe.name, AtWork()), now_utc_ns, at_utc_ns))
        put(self._store, lines)
        before = self._registry.seen.states()
        changed = {probe: state for probe, state in kept(now).items() if before.get(probe) != state}
        if changed:
            self._registry.seen.keep_states(changed)
        for one in now:
            if one.probe.name in changed and one.state.state != getattr(before.get(one.probe.name), "state", None):
                _LOG.info("%s is %s: %s", one.probe.name, one.state.state, one.state.why)

    def _seen(self, now_utc_ns: int, at_utc_ns: int) -> list[str]:
        """What needs no question to the database: a store without queries has it too."""
        sights, silent_ns = self._registry.seen.all(), int(self._tolerances.silent_after_s * 1e9)
        return [
            _line(
                "expected",
                probe.name,
                {"seen": int((s := sights.get(probe.name)) is not None and now_utc_ns - s.last_utc_ns <= silent_ns)},
                at_utc_ns,
            )
            for probe in self._registry.probes.all()
            if probe.revoked_utc_ns is None
        ]


def _state_line(one: ProbeNow, work: AtWork, now_utc_ns: int, at_utc_ns: int) -> str:
    state, sight, report = one.state, one.seen, one.report
    fields: dict[str, Value | None] = {
        "state": state.state,
        "state_code": PROBE_STATES.index(state.state),
        "since_s": max(0.0, (now_utc_ns - state.since_utc_ns) / 1e9),
        "last_seen_s": None if sight is None else max(0.0, (now_utc_ns - sight.last_utc_ns) / 1e9),
        "unsent_records": None if report is None else report.waiting,
        "unsent_oldest_s": None,
        "run": work.run,
        "experiment": work.experiment,
        "campaign": work.campaign,
    }
    if report is not None and report.waiting:
        fields["unsent_oldest_s"] = max(0.0, (now_utc_ns - report.settled_before_utc_ns) / 1e9)
    return _line("probe_state", one.probe.name, fields, at_utc_ns)


def _line(measurement: str, probe: str, fields: dict[str, Value | None], utc_ns: int) -> str:
    line = own_line(measurement, {"probe": probe}, fields, utc_ns)
    assert line is not None  # noqa: S101  (for the type checker: there is always a field)
    return line


_BUDGET_S = 3.0
_STATES = ("complete", "expired", "under_way", "waiting", "missing", "uncounted")
_RECORDS_EVERY_S = 600.0
_SHARE = 100
"""A probe whose records took long to count waits a hundred times as long for the next count."""


class LedgerSeries(OwnSeries):
    """``retention_days``: after which the database forgets; None: never."""

    def __init__(
        self, registry: Registry, store: SeriesStore, retention_days: int | None, period_s: int = PERIOD_S
    ) -> None:
        super().__init__("ledger", period_s)
        self._registry, self._store, self._retention_days = registry, store, retention_days
        self._records = RecordCounts(store)
        self._totals = RunningTotals(registry, self._records, retention_days)
        self._next_s: dict[str, float] = {}

    def once(self, now_utc_ns: int) -> None:
        """See ``OwnSeries``."""
        at_utc_ns = self.whole(now_utc_ns)
        lines = list(self._traces(now_utc_ns, at_utc_ns))
        try:
            self._totals.bring_up(now_utc_ns, _BUDGET_S)
            lines += self._ledger(now_utc_ns, at_utc_ns)
            lines += self._accounts(now_utc_ns, at_utc_ns)
        except QueryError as error:
            _LOG.warning("no series of the ledger: %s", error)
        put(self._store, lines)

    def _ledger(self, now_utc_ns: int, at_utc_ns: int) -> Iterator[str]:
        of: dict[tuple[str, str], dict[str, Value | None]] = {}
        for one in self._registry.ledger_runs.sums():
            fields = of.setdefault((one.probe, one.campaign), {f"runs_{state}": 0 for state in _STATES})
            fields[f"runs_{one.state}"] = one.runs
            for name in ("failed", "records_promised", "records_arrived", "files_promised", "files_received"):
                key = "runs_failed" if name == "failed" else name
                fields[key] = int(fields.get(key) or 0) + getattr(one, name)
        since = self._registry.ledger_runs.open_since()
        for (probe, campaign), fields in of.items():
            records, files = since.get((probe, campaign), (None, None))
            fields["incomplete_s"] = None if records is None else max(0.0, (now_utc_ns - records) / 1e9)
            fields["files_incomplete_s"] = None if files is None else max(0.0, (now_utc_ns - files) / 1e9)
            if line := own_line("ledger", {"probe": probe, "campaign": campaign}, fields, at_utc_ns):
                yield line

    def _accounts(self, now_utc_ns: int, at_utc_ns: int) -> Iterator[str]:
        """Of the probes whose turn it is, the longest overdue first."""
        began_s = time.monotonic()
        accounts = Accounts(self._registry, self._records, self._retention_days, now_utc_ns)
        turn = sorted(self._registry.probes.all(), key=lambda probe: self._next_s.get(probe.name, 0.0))
        for probe in turn:
            start_s = time.monotonic()
            if self._next_s.get(probe.name, 0.0) > start_s or start_s - began_s > _BUDGET_S or self.ending:
                return
            found = accounts.of_probe(probe.name, probe.created_utc_ns, self._records.reports(probe.name))
            took_s = time.monotonic() - start_s
            names = ("made", "arrived", "rejected", "dropped", "waiting", "unexplained")
            reported = [account for account in found if account.spool is not None]
            # One that has not reported yet is about to.
            self._next_s[probe.name] = start_s + max(_RECORDS_EVERY_S if reported else 0.0, _SHARE * took_s)
            fields: dict[str, Value | None] = {
                name: sum(getattr(account, name) or 0 for account in reported) for name in names if reported
            }
            if line := own_line("ledger_records", {"probe": probe.name}, fields, at_utc_ns):
                yield line

    def _traces(self, now_utc_ns: int, at_utc_ns: int) -> Iterator[str]:
        received = self._registry.traces.sums()
        unfinished: dict[str, list[tuple[int, int]]] = {}
        for one in self._registry.pending_uploads.unfinished():
            left = one.stream_bytes - one.checked_bytes
            unfinished.setdefault(one.probe, []).append((left, one.offered_utc_ns))
        for probe in sorted({*received, *unfinished}):
            count, size, stored = received.get(probe, (0, 0, 0))
            going = unfinished.get(probe, [])
            oldest = min((offered for _, offered in going), default=None)
            fields: dict[str, Value | None] = {
                "received": count,
                "received_bytes": size,
                "stored_bytes": stored,
                "unfinished": len(going),
                "unfinished_bytes": sum(left for left, _ in going),
                "unfinished_oldest_s": None if oldest is None else max(0.0, (now_utc_ns - oldest) / 1e9),
            }
            if line := own_line("server_traces", {"probe": probe}, fields, at_utc_ns):
                yield line


_HELD_EVERY_S = 600.0
_HELD_SHARE = 100
"""A folder whose files took long to count is counted again after a hundred times as long."""
_PROC = Path("/proc")


def machine(proc: Path) -> dict[str, Value | None]:
    """Fields of ``server_health`` that are the machine's, but for ``cpu_percent``."""
    found = re.findall(r"^(MemTotal|MemAvailable): +([0-9]+) kB$", _text(proc / "meminfo"), re.MULTILINE)
    memory = {name: 1024 * int(kib) for name, kib in found}
    return {
        "load_1min": _first_number(_text(proc / "loadavg")),
        "cores": len(os.sched_getaffinity(0)),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "uptime_s": _first_number(_text(proc / "uptime")),
    }


def ticks(proc: Path) -> tuple[int, int] | None:
    """Of all processors since the boot: those at work, and all. Idle is the fourth in /proc/stat, iowait the fifth; guests' time is in
    users' already."""
    found = re.match(r"cpu((?: +[0-9]+){5,8})", _text(proc / "stat"))
    if found is None:
        return None
    counts = [int(word) for word in found[1].split()]
    return sum(counts) - counts[3] - counts[4], sum(counts)


def busy_percent(before: tuple[int, int] | None, now: tuple[int, int] | None) -> float | None:
    """Between two ``ticks``, 0 to 100; None without both, or with no time between them."""
    if before is None or now is None or now[1] <= before[1]:
        return None
    return min(100.0, max(0.0, 100.0 * (now[0] - before[0]) / (now[1] - before[1])))


def disk(place: Path) -> dict[str, int | None] | None:
    """Fields of ``server_disk`` but for ``held_bytes``; None where there is no such place."""
    try:
        status = os.statvfs(place)
    except OSError:
        return None
    return {
        "free_bytes": status.f_bavail * status.f_frsize,
        "used_bytes": (status.f_blocks - status.f_bfree) * status.f_frsize,
        "free_inodes": status.f_favail if status.f_files else None,
    }


def held_bytes(place: Path) -> int:
    """On disk, of all files in a folder, or of a file and those beside it whose names begin as its own (SQLite's log). What goes or may
    not be read meanwhile counts as nothing."""
    if not place.is_dir():
        return sum(map(_blocks, place.parent.glob(f"{place.name}*")))
    return sum(_blocks(Path(folder) / name) for folder, _, names in os.walk(place) for name in names)


class MachineSeries(OwnSeries):
    """``places``: the server's folders, and its registry's file, by their names in SERVER_PLACES (tandem_server.schema.measurements)."""

    def __init__(
        self, registry: Registry, store: SeriesStore, places: Mapping[str, Path], period_s: int = PERIOD_S
    ) -> None:
        super().__init__("machine", period_s)
        self._probes, self._store, self._places = registry.probes, store, places
        self._before = ticks(_PROC)
        self._next_s: dict[str, float] = {}

    def once(self, now_utc_ns: int) -> None:
        """See ``OwnSeries``."""
        at_utc_ns = self.whole(now_utc_ns)
        began_s = time.perf_counter()
        version = self._store.ping()
        answer_ms = 1e3 * (time.perf_counter() - began_s)
        now = ticks(_PROC)
        fields: dict[str, Value | None] = {
            **machine(_PROC),
            "cpu_percent": busy_percent(self._before, now),
            "database_answer_ms": answer_ms,
            "database": version or None,
            "version": __version__,
            "probes": sum(probe.revoked_utc_ns is None for probe in self._probes.all()),
        }
        self._before = now
        lines = [own_line("server_health", {}, fields, at_utc_ns)]
        for name, place in self._places.items():
            if (usage := disk(place)) is not None:
                usage["held_bytes"] = self._held(name)
                lines.append(own_line("server_disk", {"place": name}, usage, at_utc_ns))
        put(self._store, [line for line in lines if line is not None])

    def _held(self, name: str) -> int | None:
        """Counted now, or None while it is not due."""
        start_s = time.monotonic()
        if start_s < self._next_s.get(name, 0.0):
            return None
        held = held_bytes(self._places[name])
        self._next_s[name] = start_s + max(_HELD_EVERY_S, _HELD_SHARE * (time.monotonic() - start_s))
        return held


def _blocks(file: Path) -> int:
    try:
        return file.lstat().st_blocks * 512
    except OSError:
        return 0


def _first_number(text: str) -> float | None:
    found = re.match(r"[0-9]+(?:\.[0-9]+)?", text)
    return None if found is None else float(found[0])


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
