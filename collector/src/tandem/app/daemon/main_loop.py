"""The main loop: polls, samples and events come in by one queue; one thread makes records and writes the spool."""

from __future__ import annotations

import logging
import queue
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tandem.app.campaign.wiring import CampaignPart
from tandem.app.clock_watch import ClockRecords
from tandem.app.config import Config
from tandem.app.daemon.accounts import Account, PollAccount
from tandem.app.daemon.modems import Recovery
from tandem.app.daemon.status import StatusModel
from tandem.app.health.machine import Roots
from tandem.app.health.reports import Reports
from tandem.app.runs.captures import Captured, Captures, SalvagedCapture
from tandem.app.runs.context import RunObserver
from tandem.app.runs.executor import MobilityTrigger, RunScheduler
from tandem.app.runs.manifest import server_captures
from tandem.app.runs.process import Ending
from tandem.app.runs.request import Plan, PlannedRun
from tandem.app.runs.steering import SteeringPart
from tandem.app.traces import TracesPart
from tandem.export import Exporter
from tandem.export.clock import Clock
from tandem.mobility.detectors import Detectors
from tandem.modem.poll import Poll
from tandem.mptcp.paths import PathEvent
from tandem.schema.record import Record, RecordError, Value
from tandem.spool import Spool, SpoolFullError
from tandem.spool.database import KEPT_LONGEST

log = logging.getLogger(__name__)

TICK_NS = 1_000_000_000

MEMORY_RECORDS = 20_000
"""Records that may wait in memory: about five minutes of runs, hours of polls; 20 MB."""


class SpoolBuffer:
    """The spool's one writer: gathers records in memory for at most a second, and longer only while the disk takes nothing. Used by one
    thread. ``dropped``: records given up since the start because memory was full too."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._waiting: list[Record] = []
        self._given_up = 0
        self.full = False
        """Whether the disk took nothing the last time."""
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, records: Sequence[Record]) -> None:
        """Take records; they are durable after the next ``commit``."""
        self._waiting.extend(records)
        excess = len(self._waiting) - MEMORY_RECORDS
        if excess > 0:
            # Oldest first, what everything else is read by last; as the spool does.
            series = [n for n, record in enumerate(self._waiting) if record.measurement not in KEPT_LONGEST][:excess]
            gone = set(series if len(series) == excess else range(excess))
            self._waiting = [record for n, record in enumerate(self._waiting) if n not in gone]
            self._given_up += excess
            self.dropped += excess

    def commit(self) -> bool:
        """Put what waits into the spool; False (and one line in the log) when the disk takes nothing."""
        try:
            self._spool.append(self._waiting, dropped=self._given_up)
        except SpoolFullError as error:
            if not self.full:
                log.error("%s", error)
            self.full = True
            return False
        if self.full:
            log.warning("the disk takes records again; %d were given up meanwhile", self._given_up)
        self._waiting, self._given_up, self.full = [], 0, False
        return True


class MainLoop(RunObserver):
    """Wires what others made; those parts that need it are set before the first ``turn``. ``put`` from any thread; everything else by the
    thread that calls ``turn``."""

    scheduler: RunScheduler
    campaigns: CampaignPart
    """While one is under way, it alone says what is measured."""
    traces: TracesPart
    steering: SteeringPart
    recovery: Recovery | None = None

    def __init__(
        self,
        config: Config,
        clock: Clock,
        spool: Spool,
        detectors: Detectors,
        model: StatusModel,
        exporter: Exporter,
        captures: Captures | None,
        account: Account,
        roots: Roots,
    ) -> None:
        self._config, self._clock, self._spool, self._detectors = config, clock, spool, detectors
        self._model, self._exporter, self._captures = model, exporter, captures
        self._operators = config.operators
        self._queue: queue.SimpleQueue[Poll | list[Record] | PathEvent | Record | None] = queue.SimpleQueue()
        self.buffer = SpoolBuffer(spool)
        self._clock_records = ClockRecords(clock)
        self.polls = PollAccount([p.name for p in config.paths if p.modem is not None])
        self.reports = Reports(config, clock, account, roots, time.monotonic_ns())
        self.each_second: list[Callable[[], None]] = []
        """What else is to be looked after once a second, by this thread: nothing that takes long."""
        self.captured: list[dict[str, Any]] = []
        self._due_ns = time.monotonic_ns() + TICK_NS
        self.trigger = MobilityTrigger(config, account)

    # --- from any thread -----------------------------------------------------------------------------------------------

    def put(self, thing: Poll | list[Record] | PathEvent | None) -> None:
        """A poll, records, a change of a path, or None to wake ``turn``. Safe in a signal handler."""
        self._queue.put(thing)

    def put_speed(self, record: Record) -> None:
        """The speed of a fix, for the detectors alone: it is never kept nor sent."""
        self._queue.put(record)

    def event(self, kind: str, detail: str | None = None, path: str | None = None, **fields: Value | None) -> None:
        """Something noticed outside of the radio."""
        now = time.monotonic_ns()
        tags = {"kind": kind, "path": path, "operator": self._operators.get(path) if path else None}
        text = detail or kind.replace("_", " ")
        self._queue.put([Record.make("event", tags, {"detail": text[:500], **fields}, now)])

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
        while True:
            try:
                thing = self._queue.get_nowait()
            except queue.Empty:
                return
            if thing is not None:
                self._take(thing)

    def _take(self, thing: Poll | list[Record] | PathEvent | Record) -> None:
        if isinstance(thing, list):
            self._note(thing)
            for record in thing:
                if record.measurement == "registration":  # a cell told between two polls
                    self._note(self._detectors.feed(record))
        elif isinstance(thing, Record):
            self._note(self._detectors.feed(thing))
        elif isinstance(thing, PathEvent):
            self.event(thing.kind, thing.detail, thing.path, state=thing.state, took_ms=thing.took_ms)
        else:
            self._polled(thing)

    def _polled(self, poll: Poll) -> None:
        late_ms = max(0, poll.began_monotonic_ns - poll.due_monotonic_ns) / 1e6
        self.reports.polled(poll)
        if self.recovery is not None:
            self.recovery.polled(poll)
        self.polls.add(poll.path, late_ms, failed=poll.failure is not None, skipped=poll.skipped)
        try:
            record = poll.record()
        except RecordError:
            log.exception("%s: a poll broke the schema", poll.path)
            return
        self.buffer.add([record])
        self._model.polled(record, poll.driver, poll.model)
        self._note(self._detectors.feed(record))

    def _note(self, records: Sequence[Record]) -> None:
        """Records of any kind; events are shown and may start a pair."""
        self.buffer.add(records)
        for record in records:
            self.campaigns.noted(record)
            self.traces.noted(record)
            if record.measurement == "event":
                self.steering.noted(record)
                self.reports.noted(record)
                self._show_mobility()
                self._model.happened(record)
                if self._detectors.mobile and not self.campaigns.campaigns.under_way:
                    self.trigger.noticed(record.tags["kind"], self.scheduler)

    def tick(self, now_ns: int) -> None:
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
        self.buffer.commit()
        self.refresh()
        self.campaigns.tick()
        for action in self.each_second:
            try:
                action()
            except Exception:
                # Records are made and kept whatever becomes of the rest.
                log.exception("%s failed; trying again", action.__qualname__)

    def refresh(self) -> None:
        """Bring the status's counts up to date: copies, so that whoever asks for it never waits for a disk under the spool's lock."""
        counts = self._spool.counts()
        self._model.spool = {
            "made": counts.made + self.buffer.waiting,
            "sent": counts.sent,
            "pending": counts.pending + self.buffer.waiting,
            "rejected": counts.rejected,
            "dropped": counts.dropped,
            "path": self._exporter.path,
        }
        self._model.polls = self.polls.totals()
        self._model.captures_bytes = self._captures.used_bytes if self._captures is not None else 0
        full = "the disk is full: records wait in memory" if self.buffer.full else None
        self._model.clock = self._clock.state()
        self._model.trouble = (
            full or (self._clock.trouble if not self._clock.synchronised else None) or self._exporter.trouble
        )
        self._show_mobility()

    def _show_mobility(self) -> None:
        detectors = self._detectors
        self._model.mobile_since_ns, self._model.speed_class = detectors.mobile_since_ns, detectors.speed_class

    def report(self, now_ns: int, *, last: bool = False) -> None:
        """Health and usage records, and the spool's account."""
        size_bytes, oldest_s = self._spool_on_disk()
        own: dict[str, Value | None] = {
            "spool_records": self._spool.counts().pending + self.buffer.waiting,
            "spool_bytes": size_bytes,
            "spool_oldest_s": oldest_s,
            "spool_limit_bytes": self._spool.limit_bytes,
            "captures_bytes": self._captures.used_bytes if self._captures is not None else 0,
            "mobile": self._detectors.mobile,
            "speed_class": self._detectors.speed_class,
            **self.traces.health(),
        }
        records = self.reports.report(own, self.control_bytes(), self.traces.sent_bytes(), now_ns, last=last)
        self._note([*records, *spool_records(self._spool, oldest_s, self._exporter.manifests_waiting, now_ns)])

    def control_bytes(self) -> dict[str, int]:
        """By path, what the exporter and the campaigns' queue moved since the start."""
        queue_bytes = self.campaigns.control_bytes()
        return {path: count + queue_bytes.get(path, 0) for path, count in self._exporter.payload_bytes().items()}

    def _spool_on_disk(self) -> tuple[int | None, float | None]:
        """Its bytes and the age of its oldest record; None while the disk cannot be read, which must not end the measuring."""
        try:
            size_bytes, oldest = self._spool.used_bytes(), self._spool.oldest()
            return size_bytes, None if oldest is None else self._clock.age_s(*oldest)
        except SpoolFullError:
            return None, None  # reported by the buffer, which writes once a second

    def salvaged(self, capture: SalvagedCapture) -> None:
        if capture.row is not None:
            self.captured.append(capture.row)
        self.event("capture_salvaged", capture.detail, capture.path)

    # --- runs ---------------------------------------------------------------------------------------------------------------

    def run_ended(self, plan: Plan, run: PlannedRun, ending: Ending, captured: Sequence[Captured]) -> None:
        shared = plan.request.pairing == "simultaneous"
        for capture in captured:
            end, path = capture.end, capture.path
            name = str(end.file.relative_to(self._config.folder))
            row = {"file": name, "bytes": end.bytes, "packets": end.packets, "path": path, "cut": end.cut}
            self.captured.append({**row, "run": None if shared else run.id, "pair": plan.pair})
            if end.cut and "budget" in (end.reason or ""):
                self.event("capture_budget", f"{name} ends early: {end.reason}", path)
            elif end.cut:
                log.warning("%s ends early: %s", name, end.reason)
        whys: Counter[str] = Counter()
        for one in server_captures(ending) if plan.request.capture == "both" else ():
            why = one["why"] or ("its quota ended it early" if one["truncated"] else None)
            if why is not None and one["session"] is not None:  # without one the run's failure says what was wrong
                whys[why] += 1
        for why, sessions in whys.items():  # a run of page loads has a session for each
            times = f" ({sessions} sessions)" if sessions > 1 else ""
            self.event("capture_missing", f"{run.id}: the server's capture: {why}{times}")


def spool_records(spool: Spool, oldest_s: float | None, manifests: int, now_ns: int) -> list[Record]:
    """The spool's account, for the server's ledger: one record; none while the disk cannot be read, which must not end the measuring."""
    try:
        settled = spool.settled()  # before the counts: what settles meanwhile is in them, and nobody takes it for lost
        counts = spool.counts()
    except SpoolFullError:
        return []
    fields: dict[str, Value | None] = {
        "spool": spool.identity.id,
        "first": spool.identity.first,
        "made": counts.made,
        "sent": counts.sent,
        "rejected": counts.rejected,
        "dropped": counts.dropped,
        "settled": settled,
        "oldest_s": oldest_s,
        "manifests": manifests,
    }
    return [Record.make("spool", {}, fields, now_ns)]
