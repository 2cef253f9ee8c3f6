"""Each run: what was promised, what arrived, what is missing and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from tandem.schema.trace import SERVER_CAPTURES
from tandem_server.ledger.promises import Promise, PromisedFile
from tandem_server.ledger.report import SpoolReport
from tandem_server.registry import CompleteRun, Lone, TablesOf, TraceRow, Unfinished

RunState = Literal["complete", "expired", "under_way", "waiting", "missing"]
"""``complete``: all of it is here; ``expired``: the database has forgotten it by now; ``under_way``: a session is open or has just ended;
``waiting``: what is not here is known to be at the probe still; ``missing``: something is gone, or nobody knows where it is."""

Why = Literal[
    "not_sent", "not_heard", "refused", "unexplained", "not_received", "on_the_way", "other_hash", "no_manifest", "cut_off", "gone"
]  # fmt: skip
_LATER: frozenset[Why] = frozenset({"not_sent", "not_heard", "not_received", "on_the_way", "no_manifest"})
"""What may still come."""

NOT_MADE = "not made: "
_GRACE_NS = 600 * 10**9
"""After its session's end a run still closes captures and waits for its pair's others before its manifest is sent."""


@dataclass(frozen=True, slots=True)
class Lack:
    """``what`` and ``name``: records of a measurement (``count``), a file, or the manifest itself. ``detail``: one line for people."""

    what: Literal["records", "file", "manifest"]
    name: str
    count: int
    why: Why
    detail: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. ``records``: by measurement promised and arrived; ``files``: by name ``received``, or why not, and captures that the server
    was asked for and did not make (``NOT_MADE``), which nobody promised; ``status`` as the probe told it. ``analysed``: how many captures
    have tables; ``analysis_failed``: by name why others have none. Times in UTC ns."""

    id: str
    probe: str
    kind: str
    state: RunState
    status: str
    received_utc_ns: int | None
    ended_utc_ns: int | None
    records: dict[str, tuple[int, int]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    missing: tuple[Lack, ...] = ()
    analysed: int = 0
    analysis_failed: dict[str, str] = field(default_factory=dict)

    def with_tables(self, tables: Mapping[tuple[str, str], TablesOf]) -> RunRow:
        """With what became of its captures, by probe and name."""
        own = {name: found for name in self.files if (found := tables.get((self.probe, name))) is not None}
        failed = {name: one.why or "" for name, one in own.items() if one.state == "failed"}
        return replace(self, analysed=sum(one.state == "analysed" for one in own.values()), analysis_failed=failed)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Records promised and arrived, files promised and received."""
        received = sum(state == "received" for state in self.files.values())
        promised, arrived = (sum(pair[n] for pair in self.records.values()) for n in (0, 1))
        return promised, arrived, len(self.files) - len(self.not_made), received

    @property
    def not_made(self) -> dict[str, str]:
        """By name why the server has no capture of its own."""
        return {name: told.removeprefix(NOT_MADE) for name, told in self.files.items() if told.startswith(NOT_MADE)}


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known of the run's probe. ``report``: the newest of the run's spool. ``traces``, ``unfinished``: by name; ``contents``:
    hashes of what was received."""

    report: SpoolReport | None
    last_seen_utc_ns: int | None
    traces: Mapping[str, TraceRow]
    contents: frozenset[str]
    unfinished: Mapping[str, Unfinished]


def judge(
    promise: Promise, arrived: Mapping[str, int], known: Known, oldest_utc_ns: int | None, *, with_files: bool
) -> RunRow:
    """The row of a run whose manifest is here. ``oldest_utc_ns``: what the database still keeps; ``with_files`` False: files are left
    out."""
    records = {name: (count, arrived.get(name, 0)) for name, count in promise.records.items()}
    ended = promise.ended_utc_ns or promise.received_utc_ns
    expired = oldest_utc_ns is not None and (promise.started_utc_ns or ended) < oldest_utc_ns
    lacks: list[Lack] = []
    if not expired:
        why, detail = _why_records(known, ended)
        lacks += [
            Lack("records", name, told - here, why, detail) for name, (told, here) in records.items() if here < told
        ]
    files: dict[str, str] = {}
    for file in promise.files if with_files else ():
        lack = _file(file, known)
        files[file.name] = "received" if lack is None else lack.why
        lacks += [] if lack is None else [lack]
    if with_files:
        files |= {name: NOT_MADE + why for name, why in promise.not_made.items()}
    state: RunState = "expired" if expired else "complete"
    if lacks:
        state = "waiting" if all(lack.why in _LATER for lack in lacks) else "missing"
    return RunRow(
        promise.id,
        promise.probe,
        promise.kind,
        state,
        promise.status,
        promise.received_utc_ns,
        promise.ended_utc_ns,
        records,
        files,
        tuple(lacks),
    )


def judge_lone(lone: Lone, known: Known, now_utc_ns: int) -> RunRow:
    """The row of a run that only its sessions tell of: what it promised nobody knows."""
    ended = lone.ended_utc_ns
    opened = f"a session was opened {_time(lone.opened_utc_ns)}, {lone.sent_bytes} bytes sent"
    if ended is None or now_utc_ns - ended < _GRACE_NS:
        detail = opened + ("" if ended is None else f", ended {_time(ended)}")
        lack, state = Lack("manifest", lone.run, 1, "no_manifest", detail), "under_way"
    else:
        why: Why = "cut_off"
        because = "the probe was heard since and has no manifest to send: the run was cut off"
        report = known.report
        if known.last_seen_utc_ns is None or known.last_seen_utc_ns < ended:
            why, because = "not_heard", f"the probe was last seen {_time(known.last_seen_utc_ns)}"
        elif report is None or report.utc_ns < ended:
            why, because = "no_manifest", "the probe's spool has not told of itself since"
        elif report.manifests:
            why, because = "not_sent", f"the probe holds {report.manifests} manifests"
        lack = Lack("manifest", lone.run, 1, why, f"{opened}; {because}")
        state = "waiting" if why in _LATER else "missing"
    row_state: RunState = "under_way" if state == "under_way" else "waiting" if state == "waiting" else "missing"
    return RunRow(lone.run, lone.probe, lone.kind, row_state, "no manifest", None, ended, missing=(lack,))


def counted_row(run: CompleteRun, oldest_utc_ns: int | None) -> RunRow:
    """The row of a run that was found complete before."""
    expired = oldest_utc_ns is not None and (run.ended_utc_ns or run.received_utc_ns) < oldest_utc_ns
    return RunRow(
        run.id,
        run.probe,
        run.kind,
        "expired" if expired else "complete",
        run.status,
        run.received_utc_ns,
        run.ended_utc_ns,
        {name: (count, count) for name, count in run.records.items()},
        dict(run.files),
    )


def unpromised(
    rows: Sequence[TraceRow], promises: Mapping[str, frozenset[str]], settled: frozenset[str]
) -> list[TraceRow]:
    """Traces received of a run whose manifest does not promise them, or that has none. ``settled``: runs found complete before."""
    return [
        row
        for row in rows
        if row.run is not None and row.run not in settled and row.name not in promises.get(row.run, frozenset())
    ]


def _why_records(known: Known, ended_utc_ns: int) -> tuple[Why, str]:
    report = known.report
    if report is None:
        seen = _time(known.last_seen_utc_ns)
        return "not_heard", f"the probe's spool told nothing yet; last seen {seen}"
    if report.utc_ns <= ended_utc_ns:
        return "not_heard", f"the probe's spool last told of itself {_time(report.utc_ns)}, before the run ended"
    if report.waiting and report.settled_before_utc_ns <= ended_utc_ns:
        held = f"{report.waiting} records waited in the probe's spool {_time(report.utc_ns)}"
        return "not_sent", f"{held}, the oldest since {_time(report.settled_before_utc_ns)}"
    if report.rejected or report.dropped:
        return "refused", f"the probe counts {report.rejected} records rejected and {report.dropped} dropped"
    return "unexplained", "the probe counts them as delivered"


def _file(file: PromisedFile, known: Known) -> Lack | None:
    trace = known.traces.get(file.name)
    if trace is not None and file.sha256 in (None, trace.sha256):
        return None
    if file.sha256 in known.contents:  # under another name
        return None
    if trace is not None:
        detail = f"received with sha256 {trace.sha256}, promised was {file.sha256}"
        return Lack("file", file.name, 1, "other_hash", detail)
    going = known.unfinished.get(file.name)
    if going is not None:
        part = f"{going.checked_bytes} of {going.stream_bytes} bytes of it are here"
        return Lack("file", file.name, 1, "on_the_way", f"{part}, last {_time(going.touched_utc_ns)}")
    if file.name.startswith(SERVER_CAPTURES):
        return Lack("file", file.name, 1, "gone", "this server made it, and has it no more")
    size = "" if file.bytes is None else f" ({file.bytes} bytes)"
    return Lack("file", file.name, 1, "not_received", f"not received{size}")


def _time(utc_ns: int | None) -> str:
    if utc_ns is None:
        return "never"
    try:
        return datetime.fromtimestamp(utc_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # a probe or a manifest may claim any time
        return "at no time that there is"
