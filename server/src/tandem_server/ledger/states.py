"""What a probe's spool reported of itself; and which named state the probe is in, and since when. Pure: what the server knows of it goes
in. The rules: docs/reference/ledger.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class SpoolReport:
    """The fields of the record (``tandem.schema.metrics``), its boot and its time."""

    probe: str
    boot: str
    utc_ns: int
    spool: str
    first: int
    made: int
    sent: int
    rejected: int
    dropped: int
    settled: int
    oldest_s: float | None
    manifests: int

    @property
    def waiting(self) -> int:
        """Not yet settled then."""
        return max(0, self.made - self.sent - self.rejected - self.dropped)

    @property
    def settled_before_utc_ns(self) -> int:
        """What was recorded before this time is settled."""
        return self.utc_ns - int((self.oldest_s or 0.0) * 1e9)


def report_of(probe: str, boot: str, utc_ns: int, fields: Mapping[str, Any]) -> SpoolReport | None:
    """The report in a record as stored; None when it is no whole one (another version's)."""
    spool, oldest_s = fields.get("spool"), fields.get("oldest_s")
    counts = [fields.get(name) for name in ("first", "made", "sent", "rejected", "dropped", "settled")]
    if not isinstance(spool, str) or not all(isinstance(n, int | float) for n in counts):
        return None
    first, made, sent, rejected, dropped, settled = (int(n) for n in counts if n is not None)
    # Nothing is older than 1970, whatever a probe says: times that come of this age go into SQLite.
    age = min(float(oldest_s), utc_ns / 1e9) if isinstance(oldest_s, int | float) else None
    return SpoolReport(
        probe,
        boot,
        utc_ns,
        spool,
        first,
        made,
        sent,
        rejected,
        dropped,
        min(settled, made),
        age,
        int(fields.get("manifests") or 0),
    )


State = Literal["measuring", "idle", "online_not_measuring", "not_uploading", "silent", "never_seen", "revoked"]


# --- The states -----------------------------------------------------------------------------------------------------

_S = 10**9


@dataclass(frozen=True, slots=True)
class Tolerances:
    """In seconds; ``[states]`` of server.toml.

    ``silent_after_s``: without a request. ``radio_after_s``: without a radio record, of a probe that is heard of.
    ``measuring_within_s``: after its last run it still counts as measuring. ``runs_after_s``: without a run while a campaign is under
    way (its triggers may wait for days: a commuter's weekend). ``unsent_after_s``: the oldest record may wait so long in the
    spool, or no record at all arrive. ``traces_after_s``: from the offer of a trace to its end; traces go at night.
    """

    silent_after_s: float = 300.0
    radio_after_s: float = 120.0
    measuring_within_s: float = 900.0
    runs_after_s: float = 259_200.0
    unsent_after_s: float = 600.0
    traces_after_s: float = 129_600.0


@dataclass(frozen=True, slots=True)
class Observed:
    """What the server knows of a probe; times in UTC ns, None: never, or not known.

    ``first_seen``, ``last_seen``: requests with its token. ``last_radio``, ``last_run``: the newest such record. ``run_open``: since
    when it has a session open at the endpoint. ``planned``: since when a campaign of its queue is under way. ``report``: the newest
    account of its spool; ``waiting_before``: records that waited some minutes before that. ``trace_offered``: its oldest unfinished one.
    """

    created_utc_ns: int
    revoked_utc_ns: int | None = None
    first_seen_utc_ns: int | None = None
    last_seen_utc_ns: int | None = None
    last_radio_utc_ns: int | None = None
    last_run_utc_ns: int | None = None
    run_open_utc_ns: int | None = None
    planned_utc_ns: int | None = None
    report: SpoolReport | None = None
    waiting_before: int | None = None
    trace_offered_utc_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ProbeState:
    """``why``: one line for people."""

    state: State
    since_utc_ns: int
    why: str


def state_of(
    seen: Observed, now_utc_ns: int, tolerances: Tolerances, before: tuple[str, int] | None = None
) -> ProbeState:
    """The state now. ``before``: the last one and since when: it goes on as long as its name stays, and what follows begins no earlier."""
    found = _found(seen, now_utc_ns, tolerances)
    since = min(found.since_utc_ns, now_utc_ns)
    if before is not None:
        since = min(before[1], now_utc_ns) if before[0] == found.state else max(since, min(before[1], now_utc_ns))
    return ProbeState(found.state, since, found.why)


def _found(seen: Observed, now: int, allowed: Tolerances) -> ProbeState:
    if seen.revoked_utc_ns is not None:
        return ProbeState("revoked", seen.revoked_utc_ns, "its token is void")
    if seen.last_seen_utc_ns is None:
        return ProbeState("never_seen", seen.created_utc_ns, "no request with its token came yet")
    if now - seen.last_seen_utc_ns > allowed.silent_after_s * _S:
        return ProbeState("silent", seen.last_seen_utc_ns, "no request since")
    first = seen.first_seen_utc_ns if seen.first_seen_utc_ns is not None else seen.last_seen_utc_ns
    return (
        _stuck(seen, now, allowed, first)
        or _not_measuring(seen, now, allowed, first)
        or _well(seen, now, allowed, first)
    )


def _stuck(seen: Observed, now: int, allowed: Tolerances, first: int) -> ProbeState | None:
    """Not uploading: what it has does not come, or comes more slowly than it is made."""
    report = seen.report
    newest = max(first, seen.last_radio_utc_ns or 0, 0 if report is None else report.utc_ns)
    if now - newest > allowed.unsent_after_s * _S:
        return ProbeState("not_uploading", newest, "it reaches the server, and no record came since")
    if report is not None and report.waiting and report.oldest_s is not None:
        oldest = report.utc_ns - int(report.oldest_s * _S)
        draining = seen.waiting_before is not None and report.waiting < seen.waiting_before
        if now - oldest > allowed.unsent_after_s * _S and not draining:
            return ProbeState("not_uploading", oldest, f"{report.waiting} records wait in its spool")
    offered = seen.trace_offered_utc_ns
    if offered is not None and now - offered > allowed.traces_after_s * _S:
        return ProbeState("not_uploading", offered, "a trace was offered and does not come")
    return None


def _not_measuring(seen: Observed, now: int, allowed: Tolerances, first: int) -> ProbeState | None:
    polled = seen.last_radio_utc_ns if seen.last_radio_utc_ns is not None else first
    if now - polled > allowed.radio_after_s * _S:
        return ProbeState("online_not_measuring", polled, "no modem was polled since")
    if seen.planned_utc_ns is None or seen.run_open_utc_ns is not None:
        return None
    due = max(seen.planned_utc_ns, seen.last_run_utc_ns or 0)
    if now - due > allowed.runs_after_s * _S:
        return ProbeState("online_not_measuring", due, "a campaign is under way, and no run came since")
    return None


def _well(seen: Observed, now: int, allowed: Tolerances, first: int) -> ProbeState:
    last = seen.last_run_utc_ns
    if seen.run_open_utc_ns is not None:
        return ProbeState("measuring", min(seen.run_open_utc_ns, last or now), "a run is under way")
    if last is not None and now - last <= allowed.measuring_within_s * _S:
        return ProbeState("measuring", last, "a run ended not long ago")
    idle = first if last is None else last
    return ProbeState("idle", idle, "online, modems polled, no run" if last is None else "no run since")
