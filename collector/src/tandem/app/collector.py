"""The collector's heart: polls, samples and events come in by one queue; one thread makes records and writes the spool."""

from __future__ import annotations

import logging
import queue
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandem.app.account import Account
from tandem.app.campaign.wiring import CampaignPart
from tandem.app.clock import Clock
from tandem.app.clock.watch import ClockRecords
from tandem.app.config import Config
from tandem.app.health.machine import Roots
from tandem.app.health.reports import Reports
from tandem.app.journal import Journal
from tandem.app.live import Live
from tandem.app.machine import UsageAccount
from tandem.app.parts import DetectorsLike, PathChange, PollLike, Speed
from tandem.app.poll_account import PollAccount
from tandem.app.round_trip.round_trips import RoundTrips
from tandem.app.runs.captures import Captured, Captures, SalvagedCapture
from tandem.app.runs.context import RunObserver
from tandem.app.runs.manifest import server_captures
from tandem.app.runs.plan import Plan, PlannedRun
from tandem.app.runs.process import Ending
from tandem.app.runs.scheduler import MobilityTrigger, RunScheduler
from tandem.app.runs.steering import SteeringPart
from tandem.app.spool_account import spool_records
from tandem.app.traces.wiring import TracesPart
from tandem.export import Exporter
from tandem.schema.record import Record, RecordError, Value
from tandem.spool import Spool, SpoolFullError

log = logging.getLogger(__name__)

TICK_NS = 1_000_000_000


class Collector(RunObserver):
    """Wires what others made. ``put`` from any thread; everything else by the thread that calls ``turn``."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        spool: Spool,
        detectors: DetectorsLike,
        live: Live,
        exporter: Exporter,
        captures: Captures | None,
        usage: UsageAccount,
        account: Account,
        roots: Roots,
    ) -> None:
        self._config, self._clock, self._spool, self._detectors = config, clock, spool, detectors
        self._live, self._exporter, self._captures = live, exporter, captures
        self._operators = {p.name: p.operator for p in config.paths}
        self._queue: queue.SimpleQueue[PollLike | list[Record] | PathChange | Speed | None] = queue.SimpleQueue()
        self.journal = Journal(spool)
        self._clock_records = ClockRecords(clock)
        self.polls = PollAccount([p.name for p in config.paths if p.modem is not None])
        self.usage = usage
        self.reports = Reports(config, clock, account, self.usage, roots, time.monotonic_ns())
        self.scheduler: RunScheduler | None = None
        """Set before the first turn; without it mobility starts nothing."""
        self.campaigns: CampaignPart | None = None
        """While one is under way, it alone says what is measured."""
        self.traces: TracesPart | None = None
        self.steering: SteeringPart | None = None
        self.round_trips: RoundTrips | None = None
        self.captured: list[dict[str, Any]] = []
        self._due_ns = time.monotonic_ns() + TICK_NS
        self.trigger = MobilityTrigger(config, account)

    # --- from any thread -----------------------------------------------------------------------------------------------

    def put(self, thing: PollLike | list[Record] | PathChange | Speed | None) -> None:
        """A poll, records, a change of a path, a speed, or None to wake ``turn``. Safe in a signal handler."""
        self._queue.put(thing)

    def event(self, kind: str, detail: str | None = None, path: str | None = None, **fields: Value | None) -> None:
        """Something noticed outside of the radio."""
        now = time.monotonic_ns()
        tags = {"kind": kind, "path": path, "operator": self._operators.get(path) if path else None}
        told = {"detail": (detail or kind.replace("_", " "))[:500], **fields}
        self._queue.put([Record.make("event", tags, told, now, self._clock.utc_ns(now))])

    # --- the writer ----------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Take what comes until the next tick, then do what is due once a second."""
        while (left_ns := self._due_ns - time.monotonic_ns()) > 0:
            try:
                thing = self._queue.get(timeout=left_ns / 1e9)
            except queue.Empty:
                break
            if thing is None:
                return
            self._take(thing)
        now = time.monotonic_ns()
        self._due_ns = max(self._due_ns + TICK_NS, now)
        self.tick(now)

    def take_all(self) -> None:
        """Take what lies in the queue, without waiting."""
        while True:
            try:
                thing = self._queue.get_nowait()
            except queue.Empty:
                return
            if thing is not None:
                self._take(thing)

    def _take(self, thing: PollLike | list[Record] | PathChange | Speed) -> None:
        if isinstance(thing, list):
            self._note(thing)
            for record in thing:
                if record.measurement == "registration":  # a cell told between two polls
                    self._note(self._detectors.feed(record))
        elif isinstance(thing, Speed):
            self._note(self._detectors.feed(thing.record))
        elif isinstance(thing, PathChange):
            self.event(thing.kind, thing.detail, thing.path, state=thing.state, took_ms=thing.took_ms)
        else:
            self._polled(thing)

    def _polled(self, poll: PollLike) -> None:
        late_ms = max(0, poll.began_monotonic_ns - poll.due_monotonic_ns) / 1e6
        self.reports.polled(poll)
        self.polls.add(poll.path, late_ms, failed=poll.failure is not None, skipped=poll.skipped)
        try:
            record = poll.record()
        except RecordError:
            log.exception("%s: a poll broke the schema", poll.path)
            return
        record = self._timed(record)
        self.journal.add([record])
        self._live.polled(record, poll.driver, poll.model)
        self._note(self._detectors.feed(record))

    def _timed(self, record: Record) -> Record:
        if record.utc_ns is not None:
            return record
        return Record(
            record.measurement, record.tags, record.fields, record.monotonic_ns, self._clock.utc_ns(record.monotonic_ns)
        )

    def _note(self, records: Sequence[Record]) -> None:
        """Records of any kind; events are shown and may start a pair."""
        timed = [self._timed(record) for record in records]
        self.journal.add(timed)
        for record in timed:
            for part in (self.campaigns, self.traces):
                if part is not None:
                    part.noted(record)
            if record.measurement == "event":
                if self.steering is not None:
                    self.steering.noted(record)
                self.reports.noted(record)
                self._live.mobile_since_ns, self._live.speed_class = (
                    self._detectors.mobile_since_ns,
                    self._detectors.speed_class,
                )
                self._live.happened(record)
                if self._detectors.mobile:
                    self._on_the_move(record.tags["kind"])

    def _on_the_move(self, kind: str) -> None:
        if self.scheduler is not None and (self.campaigns is None or not self.campaigns.campaigns.under_way):
            self.trigger.noticed(kind, self.scheduler)

    def tick(self, now_ns: int) -> None:
        """What is due once a second."""
        stepped = self._clock.observe()
        if stepped is not None:
            self.event("clock_step", f"{stepped / 1e9:+.3f} s")
        self._note(self._clock_records.due(now_ns))
        self._note(self._detectors.tick(now_ns))
        for notice in self._spool.notices():
            log.warning("spool: %s", notice.detail)
            self.event(notice.kind, notice.detail)
        if self.reports.tick(now_ns):
            self.report(now_ns)
        self.journal.commit()
        self.refresh()
        if self.campaigns is not None:
            self.campaigns.tick()

    def refresh(self) -> None:
        """Bring the status's counts up to date."""
        counts = self._spool.counts()
        state = self._exporter.state
        self._live.spool = {
            "made": counts.made + self.journal.waiting,
            "sent": counts.sent,
            "pending": counts.pending + self.journal.waiting,
            "rejected": counts.rejected,
            "dropped": counts.dropped,
            "path": state.path,
        }
        self._live.polls = self.polls.totals()
        self._live.captures_bytes = self._captures.used_bytes if self._captures is not None else 0
        full = "the disk is full: records wait in memory" if self.journal.full else None
        self._live.clock = self._clock.state()
        self._live.trouble = full or (self._clock.trouble if not self._clock.synchronised else None) or state.trouble
        self._live.mobile_since_ns, self._live.speed_class = (
            self._detectors.mobile_since_ns,
            self._detectors.speed_class,
        )

    def report(self, now_ns: int, *, last: bool = False) -> None:
        """Health and usage records, and the spool's account."""
        _, oldest_s = self._spool_on_disk()
        account = spool_records(self._spool, oldest_s, self._exporter.manifests_waiting, now_ns)
        self._note([*self.reports.report(self, now_ns, last=last), *account])

    def own_fields(self) -> dict[str, Value | None]:
        """See ``health.reports.Collected``."""
        size_bytes, oldest_s = self._spool_on_disk()
        return {
            "spool_records": self._spool.counts().pending + self.journal.waiting,
            "spool_bytes": size_bytes,
            "spool_oldest_s": oldest_s,
            "spool_limit_bytes": self._spool.limit_bytes,
            "captures_bytes": self._captures.used_bytes if self._captures is not None else 0,
            "mobile": self._detectors.mobile,
            "speed_class": self._detectors.speed_class,
            **({} if self.traces is None else self.traces.health()),
        }

    def upload_bytes(self) -> dict[str, int]:
        """By path, what files of runs moved since the start."""
        return {} if self.traces is None else self.traces.sent_bytes()

    def control_bytes(self) -> dict[str, int]:
        """By path, what the exporter and the campaigns' queue moved since the start."""
        asked = {} if self.campaigns is None else self.campaigns.control_bytes()
        return {path: count + asked.get(path, 0) for path, count in self._exporter.control_bytes().items()}

    def _spool_on_disk(self) -> tuple[int | None, float | None]:
        """Its bytes and the age of its oldest record; None while the disk cannot be read, which must not end the measuring."""
        try:
            size_bytes, oldest = self._spool.used_bytes(), self._spool.oldest()
            return size_bytes, None if oldest is None else self._clock.age_s(*oldest)
        except SpoolFullError:
            return None, None  # told by the journal, which writes once a second

    def salvaged(self, capture: SalvagedCapture) -> None:
        """A capture that an earlier life left unclosed."""
        if capture.row is not None:
            self.captured.append(capture.row)
        self.event("capture_salvaged", capture.detail, capture.path)

    # --- runs ---------------------------------------------------------------------------------------------------------------

    def run_ended(self, plan: Plan, run: PlannedRun, ending: Ending, captured: Sequence[Captured]) -> None:
        """See ``RunObserver``: what became of its captures."""
        shared = plan.request.pairing == "simultaneous"
        for one in captured:
            name = str(Path(one.end.file).relative_to(self._config.folder))
            row = {
                "file": name,
                "bytes": one.end.bytes,
                "packets": one.end.packets,
                "path": one.path,
                "cut": one.end.cut,
            }
            self.captured.append({**row, "run": None if shared else run.id, "pair": plan.pair})
            if one.end.cut:
                kind = "capture_budget" if "budget" in (one.end.reason or "") else None
                if kind:
                    self.event(kind, f"{name} ends early: {one.end.reason}", one.path)
                else:
                    log.warning("%s ends early: %s", name, one.end.reason)
        whys: Counter[str] = Counter()
        for told in server_captures(ending) if plan.request.capture == "both" else ():
            why = told["why"] or ("its quota ended it early" if told["truncated"] else None)
            if why is not None and told["session"] is not None:  # without one the run's failure says what was wrong
                whys[why] += 1
        for why, sessions in whys.items():  # a run of page loads has a session for each
            times = f" ({sessions} sessions)" if sessions > 1 else ""
            self.event("capture_missing", f"{run.id}: the server's capture: {why}{times}")
