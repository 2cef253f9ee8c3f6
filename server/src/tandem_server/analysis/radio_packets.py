"""Radio events joined to the connections that were running: the rows of ``radio_packets`` (docs/reference/captures.md). Pure.

Times are whole nanoseconds since the campaign's start. A bin counts at its middle: it is before an event where that is, so a bin's time is
wrong by half its width at most. Goodput is that of the bins whose middles lie in a stretch: a bin without packets is a bin of nothing, as
long as the connection had data before and after it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.events import BEFORE_S, FACTOR, LONGEST_S, Recovery, recovery
from tandem_server.analysis.folder import capture_name

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
SECOND = 1_000_000_000
BEFORE_NS, LONGEST_NS = round(BEFORE_S * SECOND), round(LONGEST_S * SECOND)
TOGETHER_NS = 1_000_000_000
"""Events of two modems at most so far from each other are both modems': they are polled once a second."""
NEVER = np.iinfo(np.int64).max // 4
"""Later than anything."""
GAP_S = 3.0
"""Events nearer than this to another one of the same modem are left out (Mohan §4.2 names no figure)."""


class RadioEvent(NamedTuple):
    """Of one modem. ``kind``: ``signal_drop`` or ``handover``; ``change_db`` NaN of a handover."""

    t_ns: int
    path: str
    kind: str
    change_db: float


class Flow(NamedTuple):
    """A subflow that is known to be a run's. ``path`` "" where it is not known; ``file``: its capture; ``connection``: the same
    number for subflows of one connection, also in several files. ``start_ns``, ``end_ns``: its first and last packet. ``handshake_ms``
    NaN where it was not seen; ``way``: of the data, place in ``captures.WAYS``."""

    run: str
    kind: str
    path: str
    file: str
    subflow: int
    connection: int
    start_ns: int
    end_ns: int
    handshake_ms: float
    rtt_method: str | None
    way: int


@dataclass(frozen=True)
class Binned:
    """The subflows' bins in the direction in which their connection's data went, in order of subflow and time; columns of one length.
    ``flow``: place among the subflows; ``place``: the bin ``[offset_ns + place · width_ns, + width_ns)``. A bin without a row had no
    packet. RTTs are NaN without samples."""

    width_ns: int
    offset_ns: int
    flow: Whole
    place: Whole
    goodput_bytes: Array
    in_flight_bytes: Array
    rtt_mean_ms: Array
    rtt_max_ms: Array

    @cached_property
    def starts(self) -> Whole:
        """By subflow its first row; one more at the end."""
        last = int(self.flow.max(initial=-1)) + 1
        return np.asarray(np.searchsorted(self.flow, np.arange(last + 1)), dtype=np.int64)

    def of(self, flow: int) -> slice:
        """The rows of a subflow."""
        low, high = (int(self.starts[min(n, len(self.starts) - 1)]) for n in (flow, flow + 1))
        return slice(low, high)

    def first_at(self, t_ns: int) -> int:
        """The first bin whose middle is at or after a time."""
        return -((self.width_ns - 2 * (t_ns - self.offset_ns)) // (2 * self.width_ns))

    def middle_ns(self, place: Whole) -> Whole:
        """Of bins, rounded down."""
        return np.asarray(place * self.width_ns + self.offset_ns + self.width_ns // 2, dtype=np.int64)


@dataclass(slots=True)
class Joined:
    """``rows``: as ``COLUMNS`` says, absent values None. ``account``: what was joined, left out and could not be joined."""

    rows: list[dict[str, Any]]
    account: dict[str, int]


def joined(
    events: Sequence[RadioEvent], flows: Sequence[Flow], binned: Binned, probe: str = "", gap_s: float = GAP_S
) -> Joined:
    """Every event that stands apart from the others of its modem, with every connection that ran over its path then."""
    standing = _standing(events, round(gap_s * SECOND))
    data = _data_of(flows, binned)
    pairs = _running(events, flows, binned, standing, data)
    met, left_out = {event for event, _ in pairs}, sum(not one.apart for one in standing)
    account = {
        "events": len(events),
        "left_out": left_out,
        "joined": len(met),
        "without_connection": len(events) - left_out - len(met),
        "rows": len(pairs),
    }
    siblings: dict[int, list[int]] = {}
    for flow, one in enumerate(flows):
        siblings.setdefault(one.connection, []).append(flow)
    rows = []
    for event, flow in pairs:
        own = siblings[flows[flow].connection]
        row = _row(events[event], standing[event], flows, binned, flow, data[flow], own)
        row |= {"probe": probe, "gap_s": gap_s, "factor": FACTOR}
        rows.append({name: _value(kind, row[name]) for name, kind, *_ in COLUMNS})
    return Joined(rows, account)


class _Standing(NamedTuple):
    """``apart``: no other event of its path nearer than the gap. ``next_ns``: when that path's next one came. ``other_ns``: how far the
    nearest event of another path is. ``NEVER`` without one."""

    apart: bool
    next_ns: int
    other_ns: int


def _standing(events: Sequence[RadioEvent], gap_ns: int) -> list[_Standing]:
    """Of each event."""
    t_ns = np.array([event.t_ns for event in events], dtype=np.int64)
    paths = np.array([event.path for event in events], dtype=object)
    apart = np.ones(len(events), dtype=bool)
    following, other = (np.full(len(events), NEVER, dtype=np.int64) for _ in range(2))
    for path in set(paths):
        mine = np.flatnonzero(paths == path)
        mine = mine[np.argsort(t_ns[mine], kind="stable")]
        t = t_ns[mine]
        near = np.diff(t) < gap_ns
        apart[mine] = ~(np.append(near, False) | np.append(False, near))
        following[mine[:-1]] = t[1:]
        others = np.sort(t_ns[paths != path])
        if len(others):
            after = np.searchsorted(others, t)
            around = (others[np.clip(at, 0, len(others) - 1)] for at in (after - 1, after))
            other[mine] = np.minimum(*(np.abs(one - t) for one in around))
    columns = (apart.tolist(), following.tolist(), other.tolist())
    return [_Standing(*one) for one in zip(*columns, strict=True)]


def _data_of(flows: Sequence[Flow], binned: Binned) -> list[tuple[int, int]]:
    """By subflow: its connection's first bin with data, and the one after its last; the same for none."""
    found: dict[int, tuple[int, int]] = {}
    for n, flow in enumerate(flows):
        rows = binned.of(n)
        places = binned.place[rows][binned.goodput_bytes[rows] > 0]
        if len(places):
            low, high = found.get(flow.connection, (NEVER, -NEVER))
            found[flow.connection] = min(low, int(places[0])), max(high, int(places[-1]) + 1)
    return [found.get(flow.connection, (0, 0)) for flow in flows]


def _running(
    events: Sequence[RadioEvent],
    flows: Sequence[Flow],
    binned: Binned,
    standing: Sequence[_Standing],
    data: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Events and the subflows on their path between whose ends, and those of their connection's data, they lie; the end not included. A
    subflow that fell silent counts for ``BEFORE_S`` more: polls tell an event late, and some are a subflow's end."""
    first, last = np.array(data, dtype=np.int64).reshape(-1, 2).T * binned.width_ns + binned.offset_ns
    start = np.maximum(np.array([flow.start_ns for flow in flows], dtype=np.int64), first)
    end = np.minimum(np.array([flow.end_ns for flow in flows], dtype=np.int64) + BEFORE_NS, last)
    paths = np.array([flow.path for flow in flows], dtype=object)
    pairs = [
        (n, flow)
        for n, event in enumerate(events)
        if standing[n].apart
        for flow in np.flatnonzero((paths == event.path) & (start <= event.t_ns) & (event.t_ns < end)).tolist()
    ]
    return sorted(pairs, key=lambda pair: (events[pair[0]].t_ns, pair[1]))


def _row(
    event: RadioEvent,
    stands: _Standing,
    flows: Sequence[Flow],
    binned: Binned,
    flow: int,
    data: tuple[int, int],
    siblings: Sequence[int],
) -> dict[str, Any]:
    """NaN where it is not known."""
    own, t_ns, width, (first, last) = flows[flow], event.t_ns, binned.width_ns, data
    # Of its connection, not of itself: a subflow that the event silenced for good has no packets any more.
    found = _recovery(binned, flow, t_ns, stands.next_ns, last * width + binned.offset_ns)
    at = binned.first_at(t_ns)
    begun = max(binned.first_at(own.start_ns), first)
    before = max(binned.first_at(t_ns - BEFORE_NS), begun), at
    during = at, max(at, min(binned.first_at(t_ns + round(found.lasted_s * SECOND)), last))
    stretches = before, during
    goodput = [_goodput(binned, flow, stretch) for stretch in stretches]
    connection = [
        sum(_goodput(binned, one, stretch) for one in siblings) if stretch[1] > stretch[0] else math.nan
        for stretch in stretches
    ]
    share = [_over(mine, every) for mine, every in zip(goodput, connection, strict=True)]
    known = [one for one in siblings if flows[one].path not in ("", own.path)]
    other = max(known, key=lambda one: (np.nan_to_num(_goodput(binned, one, before)), -one), default=None)
    of_other = [_rtts(binned, other, stretch) for stretch in stretches]
    others = [math.nan if other is None else _goodput(binned, other, stretch) for stretch in stretches]
    return {
        "t_s": t_ns / SECOND,
        "path": event.path,
        "kind": event.kind,
        "size_db": abs(event.change_db),
        "both_modems": stands.other_ns <= TOGETHER_NS,
        "other_event_s": math.nan if stands.other_ns == NEVER else stands.other_ns / SECOND,
        "run": own.run,
        "run_kind": own.kind,
        "file": capture_name(own.file),
        "subflow": own.subflow,
        "t_r_s": found.t_r_s,
        "why": found.why,
        "silent_s": found.silent_s,
        "rtt_method": own.rtt_method,
        "handshake_rtt_ms": own.handshake_ms,
        "rtt_before_ms": found.level_ms,
        "rtt_peak_ms": found.peak_ms,
        "rtt_peak_normalised": _over(found.peak_ms, own.handshake_ms),
        **{f"{name}_s": max(b - a, 0) * (width / SECOND) for name, (a, b) in zip(_TWO, stretches, strict=True)},
        **_twice("goodput_{}_bit_per_s", goodput),
        "goodput_loss": 1 - _over(goodput[1], goodput[0]),
        **_twice("connection_{}_bit_per_s", connection),
        "connection_loss": 1 - _over(connection[1], connection[0]),
        **_twice("share_{}", share),
        "share_change": share[1] - share[0],
        "other_path": "" if other is None else flows[other].path,
        **_twice("other_{}_bit_per_s", others),
        **_twice("other_rtt_{}_ms", [middle for middle, _ in of_other]),
        "other_rtt_peak_ms": of_other[1][1],
    }


_TWO = ("before", "during")


def _twice(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name.format(when): value for when, value in zip(_TWO, values, strict=True)}


def _over(value: float, of: float) -> float:
    """NaN where there is nothing to divide by."""
    return value / of if of > 0 else math.nan


def _recovery(binned: Binned, flow: int, event_ns: int, next_ns: int, end_ns: int) -> Recovery:
    """``events.recovery`` over bins instead of samples."""
    rows = binned.of(flow)
    middle_ns = binned.middle_ns(binned.place[rows])
    high = int(np.searchsorted(middle_ns, event_ns + LONGEST_NS + 1))
    t_s = (middle_ns[:high] - event_ns) / SECOND
    mean, most = (values[rows][:high] for values in (binned.rtt_mean_ms, binned.rtt_max_ms))
    return recovery(t_s, mean, 0.0, (next_ns - event_ns) / SECOND, (end_ns - event_ns) / SECOND, most)


def _rows_in(binned: Binned, flow: int, stretch: tuple[int, int]) -> slice:
    rows = binned.of(flow)
    low, high = np.searchsorted(binned.place[rows], stretch)
    return slice(rows.start + int(low), rows.start + int(high))


def _goodput(binned: Binned, flow: int, stretch: tuple[int, int]) -> float:
    """In bit/s, of bins from … to before …; NaN of no time."""
    seconds = (stretch[1] - stretch[0]) * (binned.width_ns / SECOND)
    carried = float(binned.goodput_bytes[_rows_in(binned, flow, stretch)].sum())
    return carried * 8 / seconds if seconds > 0 else math.nan


def _rtts(binned: Binned, flow: int | None, stretch: tuple[int, int]) -> tuple[float, float]:
    """The median of its bins' means, and the greatest; NaN without any."""
    if flow is None:
        return math.nan, math.nan
    rows = _rows_in(binned, flow, stretch)
    mean, most = binned.rtt_mean_ms[rows], binned.rtt_max_ms[rows]
    known = np.isfinite(mean)
    return (float(np.median(mean[known])), float(most[known].max())) if known.any() else (math.nan, math.nan)


# --- the table -------------------------------------------------------------------------------------------------------


TABLE = "radio_packets"
COLUMNS = (
    ("probe", "str", "", "whose event and run it is"),
    ("t_s", "float", "s", "of the event, since the campaign’s start"),
    ("path", "str", "", "whose modem had it"),
    ("kind", "str", "", "signal_drop or handover"),
    ("size_db", "float", "dB", "of a drop, above 0; absent of a handover"),
    ("both_modems", "bool", "", "another modem had an event at most a second from it"),
    ("other_event_s", "float", "s", "how far the nearest event of another modem is"),
    ("run", "str", "", "id"),
    ("run_kind", "str", "", "mptcp, tcp or any, as its manifest says"),
    ("file", "str", "", "the capture’s name"),
    ("subflow", "int", "", "that ran over the path, its number in the capture"),
    ("gap_s", "float", "s", "events nearer than this to another one of their modem are left out"),
    ("factor", "float", "1", "recovered is what is back within this factor of the level before"),
    ("t_r_s", "float", "s", "from the event until the RTT is back; 0 when it never left"),
    ("why", "str", "", "why there is no t_r_s; empty where there is one"),
    ("silent_s", "float", "s", "how much of t_r_s, or of what was seen, the subflow had no RTT sample"),
    ("rtt_method", "str", "", "ack or timestamp"),
    ("handshake_rtt_ms", "float", "ms", "of the subflow"),
    ("rtt_before_ms", "float", "ms", "median of the five seconds before"),
    ("rtt_peak_ms", "float", "ms", "the greatest sample until it was back, or as far as it was seen"),
    ("rtt_peak_normalised", "float", "1", "that over the handshake’s"),
    ("before_s", "float", "s", "how much of the five seconds before counts"),
    ("during_s", "float", "s", "how long the effect was looked at"),
    ("goodput_before_bit_per_s", "float", "bit/s", "of the subflow, before"),
    ("goodput_during_bit_per_s", "float", "bit/s", "of the subflow, from the event on"),
    ("goodput_loss", "float", "1", "1 − during / before"),
    ("connection_before_bit_per_s", "float", "bit/s", "of all subflows of the connection"),
    ("connection_during_bit_per_s", "float", "bit/s", "of all subflows of the connection"),
    ("connection_loss", "float", "1", "1 − during / before"),
    ("share_before", "float", "1", "the subflow’s of the connection’s goodput"),
    ("share_during", "float", "1", "the subflow’s of the connection’s goodput"),
    ("share_change", "float", "1", "during − before"),
    ("other_path", "str", "", "of the other subflow: that on another path that carried most before; empty without one"),
    ("other_before_bit_per_s", "float", "bit/s", "the other subflow’s goodput before"),
    ("other_during_bit_per_s", "float", "bit/s", "the other subflow’s goodput from the event on"),
    ("other_rtt_before_ms", "float", "ms", "median of the other subflow’s RTT before"),
    ("other_rtt_during_ms", "float", "ms", "median of the other subflow’s RTT from the event on"),
    ("other_rtt_peak_ms", "float", "ms", "the greatest sample of the other subflow from the event on"),
)
"""Name, kind, unit, meaning."""


def as_csv(joined: Joined) -> str:
    """With a header; numbers with a point, an absent value empty, yes and no as 1 and 0."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [name for name, *_ in COLUMNS], lineterminator="\n")
    writer.writeheader()
    for row in joined.rows:
        writer.writerow({key: int(value) if isinstance(value, bool) else value for key, value in row.items()})
    return out.getvalue()


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401  (what the column holds)
    """Of the column's kind; what is not known None."""
    if value is None or (kind == "float" and math.isnan(value)):
        return None
    return {"str": str, "int": int, "bool": bool, "float": float}[kind](value)
