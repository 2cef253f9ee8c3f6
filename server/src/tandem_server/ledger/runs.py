"""Each run: what its manifest promises, what arrived, what is missing and why. Pure; nothing in a manifest, which comes from outside, is
trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tandem.schema.trace import SERVER_CAPTURES, is_name, is_sha256, server_capture
from tandem_server.ledger.records import OF_A_RUN
from tandem_server.ledger.states import SpoolReport
from tandem_server.registry import CompleteRun, Lone, Run, TablesOf, TraceRow, Unfinished
from tandem_server.utc import SECOND, utc

# --- What is promised -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PromisedFile:
    """``name`` relative to the probe's folder; ``sha256`` None where the manifest has none."""

    name: str
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Promise:
    """One run as its manifest has it; times in UTC ns, None while the probe's clock was not set. ``not_made``: by the names of captures
    requested of the server why it has none."""

    id: str
    probe: str
    kind: str
    boot: str | None
    status: str
    received_utc_ns: int
    started_utc_ns: int | None
    ended_utc_ns: int | None
    records: dict[str, int]
    files: tuple[PromisedFile, ...]
    not_made: dict[str, str] = field(default_factory=dict)


def promise_of(run: Run) -> Promise:
    """The promise of a run that is in the registry."""
    manifest = run.manifest
    records, boot = manifest.get("records"), manifest.get("boot")
    counts = records if isinstance(records, Mapping) else {}
    return Promise(
        run.id,
        run.probe,
        str(manifest.get("kind")),
        boot if isinstance(boot, str) else None,
        run.status,
        run.received_utc_ns,
        _whole(manifest.get("started_utc_ns")),
        _whole(manifest.get("ended_utc_ns")),
        {name: count for name in OF_A_RUN if (count := _whole(counts.get(name)))},
        (
            *_files(manifest.get("files")),
            *(one for one in _files(manifest.get("server_captures")) if _is_servers(one.name)),
        ),
        _not_made(run.id, manifest.get("server_captures")),
    )


def with_own(promise: Promise, traces: Iterable[TraceRow]) -> Promise:
    """With what the server captured itself of this run, whatever the probe heard of it. ``traces``: received of its probe."""
    known = {file.name for file in promise.files}
    own = [row for row in traces if row.run == promise.id and _is_servers(row.name)]
    files = [PromisedFile(row.name, row.bytes, row.sha256) for row in own if row.name not in known]
    made = {row.name for row in own}
    not_made = {name: why for name, why in promise.not_made.items() if name not in made}
    return replace(promise, files=(*promise.files, *files), not_made=not_made)


def _is_servers(name: str) -> bool:
    return name.startswith(SERVER_CAPTURES)


def _not_made(run: str, listed: object) -> dict[str, str]:
    found = {}
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict) and entry.get("name") is None and isinstance(why := entry.get("why"), str):
            session = entry.get("session")
            name = server_capture(run, session) if isinstance(session, str) else f"{SERVER_CAPTURES}{run}"
            found[name if is_name(name) else f"{SERVER_CAPTURES}{run}"] = " ".join(why.split())[:300]
    return found


def _files(listed: object) -> tuple[PromisedFile, ...]:
    found: dict[str, PromisedFile] = {}
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            digest = entry.get("sha256")
            found[entry["name"]] = PromisedFile(
                entry["name"], _whole(entry.get("bytes")), digest if is_sha256(digest) else None
            )
    return tuple(found.values())


def _whole(value: Any) -> int | None:  # noqa: ANN401  any JSON value
    return value if type(value) is int and 0 <= value < 2**63 else None


# --- What arrived -----------------------------------------------------------------------------------------------------------

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
    """One run. ``records``: by measurement promised and arrived; ``files``: by name ``received``, or why not, and captures requested of the
    server that it did not make (``NOT_MADE``), which nobody promised; ``status`` as the probe reported it. ``analysed``: how many captures
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
        return {name: why.removeprefix(NOT_MADE) for name, why in self.files.items() if why.startswith(NOT_MADE)}

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it (tandem-ledger/1)."""
        return {
            "id": self.id,
            "probe": self.probe,
            "kind": self.kind,
            "state": self.state,
            "status": self.status,
            "received_utc_ns": self.received_utc_ns,
            "ended_utc_ns": self.ended_utc_ns,
            "records": {
                name: {"promised": promised, "arrived": here} for name, (promised, here) in self.records.items()
            },
            "files": self.files,
            "analysed": self.analysed,
            "analysis_failed": self.analysis_failed,
            "missing": [asdict(lack) for lack in self.missing],
        }


def totals(runs: Sequence[RunRow]) -> dict[str, Any]:
    """Sums over runs, as JSON has them."""
    promised, arrived, files, received = (sum(row.counts[n] for row in runs) for n in range(4))
    return {
        "runs": len(runs),
        "by_state": dict(sorted(Counter(row.state for row in runs).items())),
        "records_promised": promised,
        "records_arrived": arrived,
        "files_promised": files,
        "files_received": received,
        "analysed": sum(row.analysed for row in runs),
        "analysis_failed": sum(len(row.analysis_failed) for row in runs),
    }


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
            Lack("records", name, count - here, why, detail) for name, (count, here) in records.items() if here < count
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
    """The row of a run that only its sessions show: what it promised nobody knows."""
    ended = lone.ended_utc_ns
    opened = f"a session was opened {_utc(lone.opened_utc_ns)}, {lone.sent_bytes} bytes sent"
    if ended is None or now_utc_ns - ended < _GRACE_NS:
        detail = opened + ("" if ended is None else f", ended {_utc(ended)}")
        lack, state = Lack("manifest", lone.run, 1, "no_manifest", detail), "under_way"
    else:
        why: Why = "cut_off"
        because = "the probe was heard since and has no manifest to send: the run was cut off"
        report = known.report
        if known.last_seen_utc_ns is None or known.last_seen_utc_ns < ended:
            why, because = "not_heard", f"the probe was last seen {_utc(known.last_seen_utc_ns)}"
        elif report is None or report.utc_ns < ended:
            why, because = "no_manifest", "the probe's spool has not reported since"
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
        seen = _utc(known.last_seen_utc_ns)
        return "not_heard", f"the probe's spool reported nothing yet; last seen {seen}"
    if report.utc_ns <= ended_utc_ns:
        return "not_heard", f"the probe's spool last reported {_utc(report.utc_ns)}, before the run ended"
    if report.waiting and report.settled_before_utc_ns <= ended_utc_ns:
        held = f"{report.waiting} records waited in the probe's spool {_utc(report.utc_ns)}"
        return "not_sent", f"{held}, the oldest since {_utc(report.settled_before_utc_ns)}"
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
        return Lack("file", file.name, 1, "on_the_way", f"{part}, last {_utc(going.touched_utc_ns)}")
    if file.name.startswith(SERVER_CAPTURES):
        return Lack("file", file.name, 1, "gone", "this server made it, and has it no more")
    size = "" if file.bytes is None else f" ({file.bytes} bytes)"
    return Lack("file", file.name, 1, "not_received", f"not received{size}")


def _utc(utc_ns: int | None) -> str:
    return utc(utc_ns, SECOND)
