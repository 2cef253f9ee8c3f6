"""Radio events joined to the connections that were running: the rows of ``radio_packets`` (docs/reference/captures.md). Pure.

Times are whole nanoseconds since the campaign's start. A bin counts at its middle: it is before an event where that is, so a bin's time is
wrong by half its width at most. Goodput is that of the bins whose middles lie in a stretch: a bin without packets is a bin of nothing, as
long as the connection had data before and after it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.events import BEFORE_S, FACTOR, LONGEST_S, NO_LEVEL, Recovery, recovery
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
LEAST_S = 1.0
"""For so long at least the effect is looked at."""
UNKNOWN_S = 5.0
"""So long where t_R cannot be known for want of samples before."""


@dataclass(frozen=True, slots=True)
class Radio:
    """Events of all modems. ``kind``: ``signal_drop`` or ``handover``; ``change_db`` NaN of a handover."""

    t_ns: Whole
    path: Sequence[str]
    kind: Sequence[str]
    change_db: Array


@dataclass(frozen=True, slots=True)
class Flows:
    """A row a subflow that is known to be a run's. ``path`` "" where it is not known; ``file``: its capture; ``connection``: the same
    number for subflows of one connection, also in several files. ``start_ns``, ``end_ns``: its first and last packet. ``handshake_ms``
    NaN where it was not seen; ``way``: of the data, place in ``captures.WAYS``."""

    run: Sequence[str]
    kind: Sequence[str]
    path: Sequence[str]
    file: Sequence[str]
    subflow: Whole
    connection: Whole
    start_ns: Whole
    end_ns: Whole
    handshake_ms: Array
    rtt_method: Sequence[str | None]
    way: Whole


@dataclass(frozen=True)
class Binned:
    """The subflows' bins in the direction in which their connection's data went, in order of subflow and time. Columns of ``table``
    (Arrow): ``flow``, row in ``Flows``; ``place``, the bin ``[offset_ns + place · width_ns, + width_ns)``; ``goodput_bytes``,
    ``in_flight_bytes``, ``rtt_mean_ms``, ``rtt_max_ms``. A bin without a row had no packet. RTTs are absent without samples."""

    width_ns: int
    offset_ns: int
    table: Any

    def __getattr__(self, name: str) -> NDArray[Any]:
        """A column as an array, absent NaN."""
        if name not in COLUMNS_OF_BINS:
            raise AttributeError(name)
        values = np.asarray(self.table[name].to_numpy())
        self.__dict__[name] = values
        return values

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


COLUMNS_OF_BINS = ("flow", "place", "goodput_bytes", "in_flight_bytes", "rtt_mean_ms", "rtt_max_ms")


class Rule(NamedTuple):
    """Under what the table was made."""

    gap_s: float
    factor: float


@dataclass(slots=True)
class Joined:
    """``rows``: columns by name, as ``columns.COLUMNS`` says. ``account``: what was joined, left out and could not be joined."""

    rule: Rule
    rows: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    account: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.rows.values()), ()))


RULE = Rule(GAP_S, FACTOR)


def joined(radio: Radio, flows: Flows, binned: Binned, rule: Rule = RULE) -> Joined:
    """Every event that stands apart from the others of its modem, with every connection that ran over its path then."""
    stands = _standing(radio, round(rule.gap_s * SECOND))
    data = _data_of(flows, binned)
    pairs = _running(radio, flows, binned, stands.apart, data)
    met = {event for event, _ in pairs}
    account = {
        "events": len(radio.t_ns),
        "left_out": int((~stands.apart).sum()),
        "joined": len(met),
        "without_connection": int(stands.apart.sum()) - len(met),
        "rows": len(pairs),
    }
    siblings: dict[int, list[int]] = {}
    for n, connection in enumerate(flows.connection.tolist()):
        siblings.setdefault(connection, []).append(n)
    rows = [
        _row(radio, flows, binned, rule, stands, event, flow, data[flow], siblings[int(flows.connection[flow])])
        for event, flow in pairs
    ]
    return Joined(rule, {name: [row.get(name) for row in rows] for name, *_ in COLUMNS}, account)


class _Standing(NamedTuple):
    """By event. ``apart``: no other one of its path nearer than the gap. ``next_ns``: when that path's next one came. ``other_ns``: how far
    the nearest event of another path is, ``NEVER`` without one."""

    apart: NDArray[np.bool_]
    next_ns: Whole
    other_ns: Whole


def _standing(radio: Radio, gap_ns: int) -> _Standing:
    count = len(radio.t_ns)
    apart, following = np.ones(count, dtype=bool), np.full(count, NEVER, dtype=np.int64)
    other = np.full(count, NEVER, dtype=np.int64)
    paths = np.array(radio.path, dtype=object)
    for path in dict.fromkeys(radio.path):
        mine = np.flatnonzero(paths == path)
        mine = mine[np.argsort(radio.t_ns[mine], kind="stable")]
        t = radio.t_ns[mine]
        near = np.diff(t) < gap_ns
        apart[mine] = ~(np.append(near, False) | np.append(False, near))
        following[mine[:-1]] = t[1:]
        others = np.concatenate([[-NEVER], np.sort(radio.t_ns[paths != path]), [NEVER]])
        at = np.searchsorted(others, t)
        nearest = np.minimum(t - others[at - 1], others[at] - t)
        other[mine] = np.where(nearest > NEVER // 2, NEVER, nearest)
    return _Standing(apart, following, other)


def _data_of(flows: Flows, binned: Binned) -> list[tuple[int, int]]:
    """By subflow: its connection's first bin with data, and the one after its last; the same for none."""
    found: dict[int, tuple[int, int]] = {}
    for n, connection in enumerate(flows.connection.tolist()):
        rows = binned.of(n)
        places = binned.place[rows][binned.goodput_bytes[rows] > 0]
        if len(places):
            low, high = found.get(connection, (NEVER, -NEVER))
            found[connection] = min(low, int(places[0])), max(high, int(places[-1]) + 1)
    return [found.get(connection, (0, 0)) for connection in flows.connection.tolist()]


def _running(
    radio: Radio, flows: Flows, binned: Binned, apart: NDArray[np.bool_], data: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Events and the subflows on their path between whose ends, and those of their connection's data, they lie; the end not included. A
    subflow that fell silent counts for ``BEFORE_S`` more: polls tell an event late, and some are a subflow's end."""
    first, last = np.array(data, dtype=np.int64).reshape(-1, 2).T * binned.width_ns + binned.offset_ns
    start, end = np.maximum(flows.start_ns, first), np.minimum(flows.end_ns + BEFORE_NS, last)
    paths = np.array(flows.path, dtype=object)
    pairs = [
        (event, flow)
        for event in np.flatnonzero(apart).tolist()
        for t_ns in (radio.t_ns[event],)
        for flow in np.flatnonzero((paths == radio.path[event]) & (start <= t_ns) & (t_ns < end)).tolist()
    ]
    return sorted(pairs, key=lambda pair: (radio.t_ns[pair[0]], pair[1]))


def _row(
    radio: Radio,
    flows: Flows,
    binned: Binned,
    rule: Rule,
    stands: _Standing,
    event: int,
    flow: int,
    data: tuple[int, int],
    siblings: Sequence[int],
) -> dict[str, Any]:
    t_ns, width, (first, last) = int(radio.t_ns[event]), binned.width_ns, data
    # Of its connection, not of itself: a subflow that the event silenced for good has no packets any more.
    found = _recovery(binned, flow, t_ns, int(stands.next_ns[event]), last * width + binned.offset_ns, rule.factor)
    at = binned.first_at(t_ns)
    begun = max(binned.first_at(int(flows.start_ns[flow])), first)
    before = max(binned.first_at(t_ns - BEFORE_NS), begun), at
    during = at, max(at, min(binned.first_at(t_ns + round(_lasted_s(found) * SECOND)), last))
    stretches = before, during
    own = [_goodput(binned, flow, stretch) for stretch in stretches]
    connection = [
        sum(_goodput(binned, one, stretch) for one in siblings) if stretch[1] > stretch[0] else math.nan
        for stretch in stretches
    ]
    share = [_over(mine, every) for mine, every in zip(own, connection, strict=True)]
    known = [one for one in siblings if flows.path[one] not in ("", flows.path[flow])]
    other = max(known, key=lambda one: (np.nan_to_num(_goodput(binned, one, before)), -one), default=None)
    of_other = [_rtts(binned, other, stretch) for stretch in stretches]
    others = [math.nan if other is None else _goodput(binned, other, stretch) for stretch in stretches]
    handshake, distance = float(flows.handshake_ms[flow]), int(stands.other_ns[event])
    return {
        "t_s": t_ns / SECOND,
        "path": radio.path[event],
        "kind": radio.kind[event],
        "size_db": abs(float(radio.change_db[event])),
        "both_modems": distance <= TOGETHER_NS,
        "other_event_s": math.nan if distance == NEVER else distance / SECOND,
        "run": flows.run[flow],
        "run_kind": flows.kind[flow],
        "file": capture_name(flows.file[flow]),
        "subflow": int(flows.subflow[flow]),
        "gap_s": rule.gap_s,
        "factor": rule.factor,
        "t_r_s": found.t_r_s,
        "why": found.why,
        "silent_s": found.silent_s,
        "rtt_method": flows.rtt_method[flow],
        "handshake_rtt_ms": handshake,
        "rtt_before_ms": found.level_ms,
        "rtt_peak_ms": found.peak_ms,
        "rtt_peak_normalised": _over(found.peak_ms, handshake),
        **{f"{name}_s": max(b - a, 0) * (width / SECOND) for name, (a, b) in zip(_TWO, stretches, strict=True)},
        **_twice("goodput_{}_bit_per_s", own),
        "goodput_loss": 1 - _over(own[1], own[0]),
        **_twice("connection_{}_bit_per_s", connection),
        "connection_loss": 1 - _over(connection[1], connection[0]),
        **_twice("share_{}", share),
        "share_change": share[1] - share[0],
        "other_path": "" if other is None else flows.path[other],
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


def _recovery(binned: Binned, flow: int, event_ns: int, next_ns: int, end_ns: int, factor: float) -> Recovery:
    """``events.recovery`` over bins instead of samples."""
    rows = binned.of(flow)
    middle_ns = binned.middle_ns(binned.place[rows])
    high = int(np.searchsorted(middle_ns, event_ns + LONGEST_NS + 1))
    t_s = (middle_ns[:high] - event_ns) / SECOND
    mean, most = (values[rows][:high] for values in (binned.rtt_mean_ms, binned.rtt_max_ms))
    return recovery(t_s, mean, 0.0, (next_ns - event_ns) / SECOND, (end_ns - event_ns) / SECOND, factor, most)


def _lasted_s(found: Recovery) -> float:
    """The effect: t_R, ``LEAST_S`` at least; where it did not end, as far as it was seen; ``UNKNOWN_S`` where nothing is known of it."""
    if not found.why:
        return min(max(found.t_r_s, LEAST_S), found.seen_s)
    return min(UNKNOWN_S, found.seen_s) if found.why in NO_LEVEL else found.seen_s


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


def records(joined: Joined) -> Iterator[dict[str, Any]]:
    """The rows, absent values None."""
    columns = [(name, kind, joined.rows[name]) for name, kind, *_ in COLUMNS] if joined.rows else []
    for n in range(len(joined)):
        yield {name: _value(kind, values[n]) for name, kind, values in columns}


def as_csv(joined: Joined) -> str:
    """With a header; numbers with a point, an absent value empty, yes and no as 1 and 0."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [name for name, *_ in COLUMNS], lineterminator="\n")
    writer.writeheader()
    for row in records(joined):
        writer.writerow({key: int(value) if isinstance(value, bool) else value for key, value in row.items()})
    return out.getvalue()


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401  (what the column holds)
    if value is None:
        return None
    if kind == "float":
        return None if math.isnan(value) else float(value)
    return {"str": str, "int": int, "bool": bool}[kind](value)
