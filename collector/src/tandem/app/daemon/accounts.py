"""What is counted: bytes of each path, by day and since the start, what of it a SIM's plan has left, and how punctual the polls were.

The days are kept across restarts. Counted are bytes on the interface as the kernel counts them, headers included, ours and everybody's:
what the operator bills. Also those that went while no collector ran are counted, as far as the kernel's counters live.
"""

from __future__ import annotations

import calendar
import json
import logging
import socket
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tandem.app.config_schema import PathConfig, PlanConfig
from tandem.schema.grades import SCALES
from tandem.schema.record import Record, Value
from tandem.spool.durable import read_or_begin, write_durably

log = logging.getLogger(__name__)


# ---------------------------------------------------------------------------------------------------------------------
# A SIM's plan from one reset to the next (days, in UTC), what it has left, and what it will have carried when it begins
# anew. Pure: days of an account in, a forecast out.
#
# The forecast is what was used since the reset, and for the time that is left the mean of the days before: of the last four,
# three, two weeks or one, whole weeks so that working days and weekends weigh as they do, and of all days while there is not
# a week. A day without an entry counts with 0 bytes (the probe was off, and will be again), from the first day that the
# account knows. Nothing is ever extrapolated from a part of a day: today counts as it is, as one more day when that raises the
# mean. So the forecast follows a heavy day as far as one day in many should count; of fewer than ``SURE_DAYS`` it is reported with
# ``sure`` False.


DAY_S = 86400.0

SURE_DAYS = 3
"""A forecast from fewer whole days warns of nothing."""

_WEEK, _WEEKS = 7, 4


def reset_before(today: date, reset_day: int) -> date:
    """The last day, ``today`` included, on which the plan began anew; in a month without that day it is the month's last."""
    reset = _reset_in(today, reset_day)
    return reset if reset <= today else _reset_in(today.replace(day=1) - timedelta(days=1), reset_day)


def reset_after(today: date, reset_day: int) -> date:
    """The next day on which the plan begins anew."""
    return _reset_in(reset_before(today, reset_day).replace(day=1) + timedelta(days=31), reset_day)


def _reset_in(month: date, reset_day: int) -> date:
    """``month``: any day of it."""
    return month.replace(day=min(reset_day, calendar.monthrange(month.year, month.month)[1]))


def midnight_s(day: date) -> float:
    """When that day begins: seconds since 1970, UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class PlanForecast:
    """One plan, now. Bytes both ways; days UTC.

    ``since``, ``reset``: the days on which this period began and on which the next does. ``used_bytes``: since then; ``left_bytes``:
    0 when nothing is. ``rate_bytes``: a day, as is expected. ``expected_bytes``: used when the plan begins anew. ``basis_days``: how
    many whole days the rate is from; ``used_up_utc_s``: when nothing will be left (a time that is past when it is so
    now), None when something will be at the reset. ``counted_from``: the first day counted, when the account knows less than
    the period: others' use before is not in here."""

    since: date
    reset: date
    used_bytes: int
    left_bytes: int
    rate_bytes: float
    expected_bytes: int
    basis_days: int
    used_up_utc_s: float | None
    counted_from: date | None

    @property
    def sure(self) -> bool:
        """Whether enough days are known for a warning."""
        return self.basis_days >= SURE_DAYS


def used_since(days: Mapping[str, int], since: date) -> int:
    """Bytes of that day and later ones, and of what has no day: names of no day sort behind all days."""
    first = since.isoformat()
    return sum(count for name, count in days.items() if name >= first)


def forecast(plan: PlanConfig, days: Mapping[str, int], utc_s: float) -> PlanForecast:
    """The plan at ``utc_s``. ``days``: bytes both ways by day (UTC, ``2026-11-21``), as ``Account.days`` gives them; an entry that is no
    day (bytes seen before the clock was set) counts as today."""
    today = datetime.fromtimestamp(utc_s, UTC).date()
    by_day = _by_day(days, today)
    since, reset = reset_before(today, plan.reset_day), reset_after(today, plan.reset_day)
    used = used_since(days, since)
    first = min(by_day, default=today)
    rate, basis = _rate(by_day, first, today)
    left_s = midnight_s(reset) - utc_s
    return PlanForecast(
        since=since,
        reset=reset,
        used_bytes=used,
        left_bytes=max(0, plan.bytes - used),
        rate_bytes=rate,
        expected_bytes=used + round(rate * left_s / DAY_S),
        basis_days=basis,
        used_up_utc_s=_used_up(plan.bytes - used, rate, utc_s, left_s),
        counted_from=first if first > since else None,
    )


def _by_day(days: Mapping[str, int], today: date) -> dict[date, int]:
    """The days as dates; those after today (the clock was set back since) and what has no day count as today."""
    found: dict[date, int] = {}
    for name, count in days.items():
        try:
            day = min(date.fromisoformat(name), today)
        except ValueError:
            day = today
        found[day] = found.get(day, 0) + count
    return found


def _rate(by_day: Mapping[date, int], first: date, today: date) -> tuple[float, int]:
    """Bytes a day, and how many whole days they are from."""
    known = (today - first).days
    basis = known if known < _WEEK else min(known // _WEEK, _WEEKS) * _WEEK
    begin = today - timedelta(days=basis)
    before = sum(count for day, count in by_day.items() if begin <= day < today)
    so_far = (before + by_day.get(today, 0)) / (basis + 1)
    return max(before / basis if basis else 0.0, so_far), basis


def _used_up(left: int, rate: float, utc_s: float, left_s: float) -> float | None:
    if left <= 0:
        return utc_s
    if rate <= 0:
        return None
    lasts_s = left / rate * DAY_S
    return utc_s + lasts_s if lasts_s < left_s else None


# ---------------------------------------------------------------------------------------------------------------------
# What each SIM carried in this period of its plan: records, the status, the warning.

UNTOLD = PlanConfig(bytes=10**15, reset_day=1, warn_share=1.0)
"""Of a SIM whose plan is not configured: it is counted from the first of the month, and never used up."""

OVER_BELOW = 0.95
"""The warning ends when the forecast is below this share of what it began at: a forecast moves a little every minute."""


@dataclass(frozen=True, slots=True)
class Sim:
    """One path's."""

    path: PathConfig
    forecast: PlanForecast
    today_bytes: int
    utc_s: float

    @property
    def limit_bytes(self) -> float | None:
        """Above it the forecast is warned of."""
        return None if self.path.plan is None else self.path.plan.bytes * self.path.plan.warn_share

    def over(self) -> bool | None:
        """Whether to warn: used already, or forecast from enough days; None between the thresholds, or when nothing is known."""
        if self.limit_bytes is None:
            return False
        known = self.forecast.expected_bytes if self.forecast.sure else self.forecast.used_bytes
        if known > self.limit_bytes:
            return True
        return None if known >= self.limit_bytes * OVER_BELOW else False

    def record(self, now_ns: int) -> Record:
        fields: dict[str, Value | None] = {
            "used_bytes": self.forecast.used_bytes,
            "used_today_bytes": self.today_bytes,
            "whole_period": self.forecast.counted_from is None,
            "daily_bytes": float(self.forecast.rate_bytes),
            "basis_days": self.forecast.basis_days,
            "expected_bytes": self.forecast.expected_bytes,
            "reset_in_s": max(0.0, midnight_s(self.forecast.reset) - self.utc_s),
        }
        fields["day_limit_bytes"] = self.path.day_limit_bytes
        if self.path.plan is not None:
            fields["plan_bytes"], fields["left_bytes"] = self.path.plan.bytes, self.forecast.left_bytes
            if self.forecast.used_up_utc_s is not None:
                fields["used_up_in_s"] = self.forecast.used_up_utc_s - self.utc_s
        return Record.make("sim_usage", {"path": self.path.name, "operator": self.path.operator}, fields, now_ns)

    def status(self) -> dict[str, Any]:
        up = self.forecast.used_up_utc_s if self.path.plan is not None else None
        return {
            "used_bytes": self.forecast.used_bytes,
            "since": self.forecast.since.isoformat(),
            "counted_from": None if self.forecast.counted_from is None else self.forecast.counted_from.isoformat(),
            "reset": self.forecast.reset.isoformat(),
            "expected_bytes": self.forecast.expected_bytes,
            "sure": self.forecast.sure,
            "plan_bytes": None if self.path.plan is None else self.path.plan.bytes,
            "left_bytes": None if self.path.plan is None else self.forecast.left_bytes,
            "used_up": None if up is None else datetime.fromtimestamp(up, UTC).date().isoformat(),
        }

    def text(self) -> str:
        """What is wrong, in one line; "" without a plan."""
        if self.path.plan is None:
            return ""
        of = f"{_gb(self.path.plan.bytes)} (new on {self.forecast.reset:%d %B})"
        if self.forecast.left_bytes == 0:
            return f"the SIM's plan is used up: {_gb(self.forecast.used_bytes)} of {of}"
        if self.forecast.expected_bytes <= self.path.plan.bytes or not self.forecast.sure:
            return f"the SIM's plan: {_gb(self.forecast.used_bytes)} used, {_gb(self.forecast.expected_bytes)} forecast of {of}"
        used_up = self.forecast.used_up_utc_s
        when = "" if used_up is None else f", used up on {datetime.fromtimestamp(used_up, UTC):%d %B}"
        return f"the SIM's plan will not last: {_gb(self.forecast.expected_bytes)} forecast of {of}{when}"


def sims(paths: Sequence[PathConfig], account: Account, utc_ns: int | None) -> list[Sim]:
    """Of paths with a modem or a plan; none while the time is not known."""
    if utc_ns is None:
        return []
    utc_s = utc_ns / 1e9
    day = datetime.fromtimestamp(utc_s, UTC).date().isoformat()
    return [
        Sim(p, forecast(p.plan or UNTOLD, account.days(p.name), utc_s), account.spent(p.name, day), utc_s)
        for p in paths
        if p.plan is not None or p.modem is not None
    ]


def _gb(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count < 1e10 else f"{count / 1e9:.0f} GB"


# ---------------------------------------------------------------------------------------------------------------------
# The account.


FORMAT = "tandem-account/1"
NAME = "account.json"
"""In the probe's folder."""

UNDATED = "undated"
"""Bytes seen before the clock was set; they go to the first day that is known."""

NET_DEV = Path("/proc/net/dev")  # not /sys, which shows the network namespace in which it was mounted

LATE_MS = SCALES["radio.poll_late_ms"].good
_KEPT = 200_000
"""Lateness values kept for the percentiles: two days at one poll a second, under 1 MB."""


def read_counters(text: str) -> dict[str, tuple[int, int]]:
    """Received and sent bytes by interface from the text of /proc/net/dev."""
    found: dict[str, tuple[int, int]] = {}
    for line in text.splitlines()[2:]:
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and len(words) >= 9 and words[0].isdigit() and words[8].isdigit():
            found[name.strip()] = (int(words[0]), int(words[8]))
    return found


@dataclass(frozen=True, slots=True)
class Counter:
    """An interface's counters, as read: ``index`` is the kernel's, which a new interface gets anew; ``boot`` the boot's id."""

    interface: str
    index: int
    boot: str
    received: int
    sent: int


@dataclass(slots=True)
class Ledger:
    """``days``: by path and day (UTC, ``2026-11-21``) received and sent bytes. ``last``: by path the counters that were counted."""

    days: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    last: dict[str, Counter] = field(default_factory=dict)

    def seen(self, path: str, now: Counter, day: str | None, *, made_since: bool = False) -> tuple[int, int]:
        """Count what grew since ``path``'s counters were seen last; received and sent bytes that were added. ``day`` None: the clock
        is not set. ``made_since``: the interface was made since the account began.

        The first counters ever of another are only noted: what went before is not known to be the path's. In a new boot they began at
        0, and so they did with an interface that was made since in the same boot (its index is higher)."""
        before = self.last.get(path)
        self.last[path] = now
        if before is None:
            grown = (now.received, now.sent) if made_since else (0, 0)
        elif before.boot == now.boot and before.index == now.index and _not_less(now, before):
            grown = (now.received - before.received, now.sent - before.sent)
        elif before.boot == now.boot and now.index < before.index:
            grown = (0, 0)  # an interface that was there all along and was another's
        else:
            grown = (now.received, now.sent)
        days = self.days.setdefault(path, {})
        if day is not None and UNDATED in days:
            undated = days.pop(UNDATED)
            self._add(path, day, undated[0], undated[1])
        if any(grown):
            self._add(path, day or UNDATED, *grown)
        return grown

    def _add(self, path: str, day: str, received: int, sent: int) -> None:
        row = self.days.setdefault(path, {}).setdefault(day, [0, 0])
        row[0] += received
        row[1] += sent

    def spent(self, path: str, day: str) -> int:
        """Bytes of that day, both ways; with those that have no day yet."""
        days = self.days.get(path, {})
        return sum(sum(days.get(name, (0, 0))) for name in {day, UNDATED})


def _not_less(now: Counter, before: Counter) -> bool:
    return now.received >= before.received and now.sent >= before.sent


def day_of(utc_ns: int | None) -> str | None:
    """The day (UTC) of a time; None while there is none."""
    return None if utc_ns is None else datetime.fromtimestamp(utc_ns / 1e9, UTC).date().isoformat()


class Account:
    """The ledger with its file in the probe's ``folder``. ``interfaces``: each path's now; ``boot``: the boot's id; ``utc_ns``: the
    time now, None while the clock is not set. From any thread."""

    def __init__(
        self, folder: Path, interfaces: Mapping[str, str | None], boot: str, utc_ns: Callable[[], int | None]
    ) -> None:
        self._file, self._interfaces, self._boot, self._utc_ns = folder / NAME, interfaces, boot, utc_ns
        self._lock = threading.Lock()
        self._changed = False
        self._ledger = read_or_begin(self._file, parse, Ledger)
        self._there = {index for index, _ in socket.if_nameindex()}
        self._since_start: dict[str, tuple[int, int]] = {}

    def spent(self, path: str, day: str) -> int:
        """Bytes of a day (UTC, ``2026-11-21``), both ways, as of the last ``update``; 0 when there was nothing."""
        with self._lock:
            return self._ledger.spent(path, day)

    def days(self, path: str) -> dict[str, int]:
        """By day (UTC; ``UNDATED`` while the clock is not set) the bytes of a path, both ways: what ``forecast`` takes."""
        with self._lock:
            return {day: sum(row) for day, row in self._ledger.days.get(path, {}).items()}

    def today(self) -> dict[str, int]:
        """By path, the bytes of this day (UTC), both ways; before the clock is set those of this boot."""
        day = day_of(self._utc_ns()) or UNDATED
        return {path: self.spent(path, day) for path in self._interfaces}

    def left_of_day(self, path: PathConfig) -> int | None:
        """As ``left_today``, by its limit a day alone."""
        limit = path.day_limit_bytes
        spent = self.spent(path.name, day_of(self._utc_ns()) or UNDATED)
        return None if limit is None else max(0, limit - spent)

    def left_today(self, path: PathConfig) -> int | None:
        """Bytes, both ways, that its SIM may still carry this day (UTC), by its limit a day and by its plan; None: no limit."""
        left, utc_ns = self.left_of_day(path), self._utc_ns()
        if left is None:
            return None
        if path.plan is not None and utc_ns is not None:
            since = reset_before(datetime.fromtimestamp(utc_ns / 1e9, UTC).date(), path.plan.reset_day)
            left = min(left, max(0, path.plan.bytes - used_since(self.days(path.name), since)))
        return left

    def update(self) -> dict[str, tuple[int, int]]:
        """Count what the interfaces carried since the last time; received and sent bytes by path since the first time."""
        day = day_of(self._utc_ns())
        with self._lock:  # counters read by one thread must not be counted after those that another read later
            counters = read_counters(NET_DEV.read_text())
            indices = {name: index for index, name in socket.if_nameindex()}
            for path, interface in self._interfaces.items():
                if interface in counters and interface in indices:
                    counter = Counter(interface, indices[interface], self._boot, *counters[interface])
                    self._changed |= self._ledger.last.get(path) != counter
                    made_since = counter.index not in self._there
                    grown = self._ledger.seen(path, counter, day, made_since=made_since)
                    before = self._since_start.get(path, (0, 0))
                    if path in self._since_start or made_since:  # else it went while no collector ran
                        before = before[0] + grown[0], before[1] + grown[1]
                    self._since_start[path] = before
            return {path: self._since_start.get(path, (0, 0)) for path in self._interfaces}

    def save(self) -> None:
        """Write it when anything changed; OSError when the disk takes nothing."""
        with self._lock:
            if self._changed:
                write_durably(self._file, _text(self._ledger).encode())
                self._changed = False


def _text(ledger: Ledger) -> str:
    days = {
        path: {day: {"received": row[0], "sent": row[1]} for day, row in sorted(rows.items())}
        for path, rows in ledger.days.items()
    }
    last = {path: asdict(counter) for path, counter in ledger.last.items()}
    return json.dumps({"format": FORMAT, "paths": days, "counters": last}, indent=1) + "\n"


def parse(text: str | bytes) -> Ledger:
    """The ledger in the file's text; ValueError when it is none."""
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"no {FORMAT}")
    try:
        days = {
            str(path): {str(day): [_count(row["received"]), _count(row["sent"])] for day, row in rows.items()}
            for path, rows in content["paths"].items()
        }
        last = {
            str(path): Counter(
                str(c["interface"]), _count(c["index"]), str(c["boot"]), _count(c["received"]), _count(c["sent"])
            )
            for path, c in content["counters"].items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not as it was written: {error}") from error
    return Ledger(days, last)


def _count(value: Any) -> int:  # noqa: ANN401 any JSON value
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


@dataclass(slots=True)
class _Polls:
    made: int = 0
    late: int = 0
    failed: int = 0
    skipped: int = 0
    worst_ms: float = 0.0
    values: array[float] = field(default_factory=lambda: array("f"))


class PollAccount:
    """Used by one thread; ``totals`` may be read by any."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = {path: _Polls() for path in paths}

    def add(self, path: str, late_ms: float, *, failed: bool, skipped: int) -> None:
        """A poll that began ``late_ms`` after it was due; ``skipped``: due times passed over before it, late as well."""
        kept = self._paths.setdefault(path, _Polls())
        kept.made += 1
        kept.late += (late_ms > LATE_MS) + skipped
        kept.failed += failed
        kept.skipped += skipped
        kept.worst_ms = max(kept.worst_ms, late_ms)
        if len(kept.values) < _KEPT:
            kept.values.append(late_ms)
        else:
            kept.values[kept.made % _KEPT] = late_ms

    def totals(self) -> dict[str, int]:
        """Over all modems."""
        return {name: sum(getattr(p, name) for p in self._paths.values()) for name in ("made", "late", "failed")}

    def as_json(self) -> dict[str, dict[str, Any]]:
        """For collector.json."""
        return {path: _row(kept) for path, kept in self._paths.items()}


def _row(kept: _Polls) -> dict[str, Any]:
    ordered = sorted(kept.values)
    return {
        "made": kept.made,
        "late": kept.late,
        "late_ms_p50": _quantile(ordered, 0.5),
        "late_ms_p99": _quantile(ordered, 0.99),
        "late_ms_max": round(kept.worst_ms, 3) if kept.made else None,
        "failed": kept.failed,
        "skipped": kept.skipped,
    }


def _quantile(ordered: list[float], share: float) -> float | None:
    """The value that ``share`` of all do not exceed; None without values."""
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)
