"""Captures from the run that made them to the server: which go up, when, over what, at what cost; kept, queued, sent."""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem.app.campaign.wiring import CampaignPart
from tandem.app.config_schema import PathConfig, PlanConfig, TracesConfig
from tandem.app.daemon.accounts import day_of, forecast
from tandem.app.runs.captures import Captures
from tandem.app.runs.context import RunContext
from tandem.export import LEAST_LEFT_BYTES, AnyPath, GatewayAddress, Permit, TraceQueue, TraceUploader
from tandem.mobility.detectors import Detectors
from tandem.schema.record import Record, Value
from tandem.schema.trace import Receipt
from tandem.spool.durable import read_or_begin, write_durably

_DAY = 1440


def begins_in(night: tuple[int, int] | None, minute: float) -> float:
    """Minutes until the night begins; 0 while it lasts. ``minute``: of the local day, 0 to 1440; ``night``: when it begins and ends, also
    over midnight; None: always."""
    if night is None:
        return 0.0
    begin, end = night
    within = begin <= minute < end if begin < end else minute >= begin or minute < end
    return 0.0 if within else (begin - minute) % _DAY


# ---------------------------------------------------------------------------------------------------------------------
# Whether traces may go up now, over which paths, and why not. Pure.


_HELD_S, _PATH_S, _CLOCK_S = 0.5, 10.0, 5.0


@dataclass(frozen=True, slots=True)
class UploadPath:
    """``left_bytes``: what uploads may still cost it today; only looked at where it is ``metered``."""

    name: str
    metered: bool
    up: bool
    left_bytes: int = 0


@dataclass(frozen=True, slots=True)
class UploadState:
    """``held``: what is being measured or about to be, None when nothing is. ``local_minute``: of the day, None while the clock is not set.
    ``still_s``: since the radio changed last, as far as the collector saw; ``requested``: a person wants it now."""

    held: str | None
    local_minute: float | None
    mobile: bool
    still_s: float
    requested: bool
    paths: Sequence[UploadPath]


def decide(rules: TracesConfig, state: UploadState) -> Permit:
    """A person's request overrules the time of day and the two quiet hours; never a measurement, nor a SIM's budget."""
    if state.held is not None:
        return _no(state.held, _HELD_S)
    if not state.requested:
        no = _time(rules, state)
        if no is not None:
            return no
    free = [p for p in state.paths if p.up and not p.metered]
    if free:
        return Permit(tuple(p.name for p in free), f"over {', '.join(p.name for p in free)}", 0.0, {})
    if rules.over == "unmetered":
        return _no("no path without a SIM is up", _PATH_S)
    metered = [p for p in state.paths if p.up]
    if not metered:
        return _no("no path is up", _PATH_S)
    paid = sorted((p for p in metered if p.left_bytes >= LEAST_LEFT_BYTES), key=lambda p: -p.left_bytes)
    if not paid:
        return _no("what uploads may cost the SIMs today is used up", _PATH_S)
    names = tuple(p.name for p in paid)
    return Permit(names, f"over {', '.join(names)}, within today's budget", 0.0, {p.name: p.left_bytes for p in paid})


def intended(rules: TracesConfig, paths: Sequence[PathConfig]) -> tuple[bool, str]:
    """Whether captures and results go up by themselves, and for people: when, over what, at what cost; or how they would."""
    if not rules.enabled:
        return False, "captures and results go up when a person asks for it only: [traces] enabled is false"
    times = [f"{minute // 60:02}:{minute % 60:02}" for minute in rules.night or ()]
    when = f"from {times[0]} to {times[1]}" if times else "at any time"
    if rules.still_for_s > 0:
        when += f" when the radio has been still for {_span(rules.still_for_s)}"
    sims = [f"{p.name} {rules.metered_bytes_per_day / 1e6:.0f} MB" for p in paths if p.is_metered]
    share = f"of a plan that is set ([path.plan]) {rules.plan_share:.0%} of what it will have left"
    paid = f"over the SIMs, a day at most {', '.join(sims)}, {share}"
    free = [p.name for p in paths if not p.is_metered]
    over_free = f"over {', '.join(free)}, which costs no SIM anything"
    if rules.over == "any":
        return True, f"captures and results go up {when}, " + (f"{over_free}, else {paid}" if free else paid)
    if free:
        return True, f"captures and results go up {when}, {over_free}"
    stay = "captures and results stay on the kit, every path has a SIM"
    return False, f'{stay}; [traces] over = "any" sends them {when}, {paid}'


def _time(rules: TracesConfig, state: UploadState) -> Permit | None:
    if not rules.enabled:
        return _no("[traces] enabled is false", 3600.0)
    if rules.night is not None:
        if state.local_minute is None:
            return _no("the clock is not set: nobody knows whether it is night", _CLOCK_S)
        wait_s = begins_in(rules.night, state.local_minute) * 60
        if wait_s > 0:
            return _no(f"night begins in {_span(wait_s)}", wait_s)
    if rules.still_for_s > 0:
        if state.mobile:
            return _no("the probe moves", _PATH_S)
        left_s = rules.still_for_s - state.still_s
        if left_s > 0:
            return _no(f"the radio changed {_span(state.still_s)} ago; in {_span(left_s)} if it stays as it is", left_s)
    return None


def _no(reason: str, again_s: float) -> Permit:
    return Permit((), f"waits: {reason}", again_s, {})


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# ---------------------------------------------------------------------------------------------------------------------
# What uploads may still cost a metered path today. Pure.


def left_today(
    rules: TracesConfig,
    plan: PlanConfig | None,
    days: Mapping[str, int],
    uploaded_bytes: int,
    utc_s: float | None,
    sim_left_bytes: int | None = None,
) -> int:
    """Bytes, both ways, headers included. ``days``: what the path carried by day, as ``Account.days``; ``uploaded_bytes``: what uploads
    cost it this day (UTC), which is in ``days`` too; ``utc_s`` None: the clock is not set, and nobody knows which day it is.

    The day's cap, what the SIM may still carry today (``sim_left_bytes``, None: no limit) and, where the SIM has a plan, this day's part
    of what the plan is expected to have left at its reset, if that is less:
    ``plan_share`` of it, the same for every day until then."""
    if utc_s is None:
        return 0
    cap = float(rules.metered_bytes_per_day)
    if plan is not None:
        now = forecast(plan, days, utc_s)
        days_left = max(1, (now.reset - datetime.fromtimestamp(utc_s, UTC).date()).days)
        spare = plan.bytes - now.expected_bytes + uploaded_bytes
        cap = min(cap, spare * rules.plan_share / days_left, now.left_bytes + uploaded_bytes)
    left = max(0, int(cap) - uploaded_bytes)
    return left if sim_left_bytes is None else min(left, sim_left_bytes)


# ---------------------------------------------------------------------------------------------------------------------
# What uploads cost each metered path, by day, kept across restarts. Noted before it is spent, so that no crash makes
# it forgotten.


log = logging.getLogger(__name__)

FORMAT = "tandem-uploads/1"
_DAYS = 2
"""How many are remembered."""


class Spent:
    """``file``: where it is kept. For one thread; ``of`` from any."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._days = read_or_begin(file, parse, dict[str, dict[str, int]])
        self._reserved: dict[str, tuple[str, int]] = {}

    def of(self, path: str, day: str) -> int:
        """Bytes of a day (UTC, ``2026-11-21``), without what is reserved just now."""
        return self._days.get(day, {}).get(path, 0)

    def reserve(self, path: str, day: str, count: int) -> None:
        """``count`` bytes are about to go. OSError when the disk takes no note of it: then nothing may go."""
        self._write(path, day, count)
        self._reserved[path] = (day, count)

    def settle(self, path: str, used: int) -> None:
        """So many went. A disk that does not take it leaves what was reserved, which is more."""
        day, count = self._reserved.pop(path)
        row = self._days.setdefault(day, {})
        try:
            self._write(path, day, used)
            row[path] = row.get(path, 0) + used
        except OSError as error:
            row[path] = row.get(path, 0) + max(count, used)
            log.error("%s: %s; hint: free disk space", self._file, error.strerror)

    def _write(self, path: str, day: str, more: int) -> None:
        days = {name: dict(row) for name, row in sorted(self._days.items())[-_DAYS:]}
        row = days.setdefault(day, {})
        row[path] = row.get(path, 0) + more
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self._file, (json.dumps({"format": FORMAT, "days": days}) + "\n").encode())


def parse(text: str | bytes) -> dict[str, dict[str, int]]:
    """Bytes by day and path; ValueError when that is not what it says."""
    content: Any = json.loads(text)
    days = content.get("days") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if not isinstance(days, dict):
        raise ValueError(f"no {FORMAT}")
    for row in days.values():
        if not isinstance(row, dict) or any(type(count) is not int or count < 0 for count in row.values()):
            raise ValueError("a day that is none")
    return days


# ---------------------------------------------------------------------------------------------------------------------
# Captures from the run that made them to the server: kept, queued, sent, and told of.


_FULL = 0.8
"""Of the captures' budget: there is to be room for what is captured until the next look."""
_EVERY_S = 10.0


class Keeping:
    """Deletes what the server has, in a thread of its own: a large file may take an SD card a while. ``free``: bytes free on the disk."""

    def __init__(
        self, rules: TracesConfig, queue: TraceQueue, captures: Captures | None, free: Callable[[], int] | None = None
    ) -> None:
        self._rules, self._queue, self._captures = rules, queue, captures
        self._free = free or (lambda: shutil.disk_usage(queue.folder).free)
        self._due_s = 0.0
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        self._due_s = 0.0

    def tick(self) -> None:
        """Once a second: see whether anything is to go, now and then."""
        now_s = time.monotonic()
        if now_s >= self._due_s and (self._thread is None or not self._thread.is_alive()) and self._queue.kept():
            self._due_s = now_s + _EVERY_S
            self._thread = threading.Thread(target=self._tidy, name="traces kept", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """``tick`` is called no more."""
        if self._thread is not None:
            self._thread.join()

    def tidy(self) -> list[str]:
        """Delete what is to go now, what was received first before all others; the names."""
        gone = []
        for one in self._queue.kept():
            if self._rules.keep == "while_room" and not self._in_the_way(one):
                continue
            if self._queue.delete(one):
                gone.append(one.name)
                if self._captures is not None and one.name.startswith("captures/"):
                    self._captures.give_back(one.bytes)
        return gone

    def _in_the_way(self, one: Receipt) -> bool:
        if self._free() < self._rules.free_bytes:
            return True
        captures = self._captures if one.name.startswith("captures/") else None
        return captures is not None and captures.used_bytes > _FULL * captures.limit_bytes

    def _tidy(self) -> None:
        try:
            gone = self.tidy()
            if gone:
                log.info("the server has them, and they made room here: %s", ", ".join(gone))
        except OSError as error:
            log.error("%s: %s", error.filename, error.strerror)


# ---------------------------------------------------------------------------------------------------------------------
# The traces of a running collector: who asks whom whether they may go, and what people see of it.


CHANGES = ("mobility_start", "mobility_stop", "signal_drop", "handover", "service_lost", "service_back")
"""Events that say that the radio changed."""


def _local_minute(utc_s: float) -> float:
    local = datetime.fromtimestamp(utc_s).astimezone()
    return local.hour * 60 + local.minute + local.second / 60


class TracesPart:
    """A collector's traces, and whether they may go to the server now (``tandem.export.Policy``). ``campaigns`` says what is being measured
    or about to be."""

    def __init__(
        self, context: RunContext, detectors: Detectors, campaigns: CampaignPart, address: GatewayAddress
    ) -> None:
        config = self._config = context.config
        rules = config.traces
        self._clock, self._paths, self._account = context.clock, context.paths, context.account
        self._detectors, self._campaigns = detectors, campaigns
        self._spent = Spent(config.folder / "traces" / "spent.json")
        self._changed_ns = time.monotonic_ns()
        self._requested: set[str] | None = set()
        self._lock = threading.Lock()
        self.queue = TraceQueue(config.folder)
        self._intended = intended(rules, config.paths)[1]
        self._gateway = AnyPath(address, context.paths.interfaces, rate_bit_per_s=rules.rate_bit_per_s)
        self._uploader = TraceUploader(self.queue, self._gateway, self, context.event, config.probe, rules.encoding)
        self._keeping = Keeping(rules, self.queue, context.captures)
        self._uploader.on_received = self._keeping.wake

    def start(self) -> None:
        self._uploader.start()

    def stop(self) -> None:
        """End at once; the next start goes on."""
        self._uploader.stop()
        self._keeping.stop()

    def tick(self) -> None:
        """Once a second, by the collector's thread."""
        self._keeping.tick()
        self._uploader.tick()

    def held(self) -> bool:
        return self._campaigns.held() is not None

    def permit(self) -> Permit:
        """Over which paths files may go now, or why none."""
        now_ns = time.monotonic_ns()
        utc_ns = self._clock.utc_ns(now_ns)
        state = UploadState(
            held=self._campaigns.held(),
            local_minute=None if utc_ns is None else _local_minute(utc_ns / 1e9),
            mobile=self._detectors.mobile,
            still_s=(now_ns - self._changed_ns) / 1e9,
            requested=self._is_requested(),
            paths=[self._path(path, utc_ns) for path in self._config.paths],
        )
        return decide(self._config.traces, state)

    def _path(self, path: PathConfig, utc_ns: int | None) -> UploadPath:
        up = self._paths.states.get(path.name, {}).get("state") == "up"
        if not path.is_metered or self._config.traces.over != "any":
            return UploadPath(path.name, path.is_metered, up)
        uploaded = self._spent.of(path.name, day_of(utc_ns) or "")
        days, utc_s = self._account.days(path.name), None if utc_ns is None else utc_ns / 1e9
        sim_left = self._account.left_today(path)
        left = left_today(self._config.traces, path.plan, days, uploaded, utc_s, sim_left)
        return UploadPath(path.name, True, up, left)

    def reserve(self, path: str, count: int) -> None:
        """So many bytes are about to go over ``path``. OSError when that cannot be noted: then nothing may go."""
        day = day_of(self._clock.utc_ns(time.monotonic_ns()))
        if day is None:
            raise OSError("the clock is not set")
        self._spent.reserve(path, day, count)

    def settle(self, path: str, used: int) -> None:
        self._spent.settle(path, used)
        self._account.update()  # the plan's forecast is to know it before more is asked for

    def noted(self, record: Record) -> None:
        if record.measurement == "event" and record.tags.get("kind") in CHANGES:
            self._changed_ns = record.monotonic_ns

    def made(self, run: str) -> None:
        self.queue.note(run)
        self._uploader.wake()

    def health(self) -> dict[str, Value | None]:
        counts = self.queue.counts()
        return {"traces_waiting": counts["waiting"], "traces_waiting_bytes": counts["waiting_bytes"]}

    def sent_bytes(self) -> dict[str, int]:
        """By path, TCP payload of uploads since the start, both ways."""
        return self._gateway.payload_bytes()

    def status(self) -> dict[str, Any]:
        counts, permit = self.queue.counts(), self.permit()
        said = permit.reason
        if not counts["waiting"]:
            said = "nothing waits"
        elif permit.paths and self._uploader.trouble is not None:
            said = f"waits: {self._uploader.trouble}"
        sent = {path: moved.sent_bytes for path, moved in self._gateway.moved().items()}
        return {
            **counts,
            "said": said,
            "intended": self._intended,
            "now": self._uploader.now if permit.paths else None,
            "sent_bytes": sent,
        }

    def requested(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request of the status socket: ``action`` status, list or upload (``names``, ``now``); ValueError with the reason."""
        action = request.get("action")
        if action == "status":
            return {"traces": self.status()}
        if action == "list":
            return {"traces": self.status(), "files": self.queue.rows()}
        if action == "upload":
            names = request.get("names", [])
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("names is no list of texts")
            unknown = self.queue.ask_for(names)
            if unknown:
                raise ValueError(f"{unknown[0]} does not wait here; hint: tandem traces list")
            if request.get("now") is True:
                with self._lock:
                    self._requested = None if not names or self._requested is None else {*self._requested, *names}
            self._uploader.wake()
            return {"traces": self.status()}
        raise ValueError("action is none of status, list, upload")

    def _is_requested(self) -> bool:
        """Whether what is next was requested by a person; a request ends when nothing waits any more."""
        following = self.queue.next()
        with self._lock:
            if following is None:
                self._requested = set() if self.queue.scanned else self._requested
                return False
            return self._requested is None or following.name in self._requested
