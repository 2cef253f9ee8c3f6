"""What each radio event did to the connections that were running: the rows of ``radio_packets``. Pure; all events at once.

Goodput is that of the bins whose middles lie in a stretch: a bin without packets is a bin of nothing, as long as the connection had data
before and after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tandem_server.analysis.papers.recovery import BEFORE_S, FACTOR, NO_LEVEL, Recovery
from tandem_server.analysis.radio.apart import NEVER, Standing, standing
from tandem_server.analysis.radio.recoveries import BEFORE_NS, SECOND, Grid, recoveries
from tandem_server.analysis.radio.shapes import Array, Binned, Flows, Joined, Radio, Rule, Whole
from tandem_server.analysis.radio.stretches import Index, greatest, medians, repeated, sums

GAP_S = 3.0
"""Events nearer than this to another one of the same modem are left out (Mohan §4.2 names no figure)."""
RULE = Rule(GAP_S, FACTOR)
LEAST_S = 1.0
"""For so long at least the effect is looked at."""
UNKNOWN_S = 5.0
"""So long where t_R cannot be known for want of samples before."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bins from ``low`` to before ``high``, by row of the table."""

    low: Whole
    high: Whole

    def seconds(self, width_ns: int) -> Array:
        """How long; 0 of none."""
        return np.asarray(np.maximum(self.high - self.low, 0) * (width_ns / SECOND), dtype=np.float64)


def joined(radio: Radio, flows: Flows, binned: Binned, rule: Rule = RULE) -> Joined:
    """Every event that stands apart, with every connection that ran over its path then."""
    stands = standing(radio, round(rule.gap_s * SECOND))
    first, last = _data_of(flows, binned)
    event, flow = _running(radio, flows, binned, stands, first, last)
    account = {
        "events": len(radio.t_ns),
        "left_out": int((~stands.apart).sum()),
        "joined": len(np.unique(event)),
        "without_connection": int(stands.apart.sum()) - len(np.unique(event)),
        "rows": len(event),
    }
    return Joined(rule, _rows(radio, flows, binned, rule, stands, event, flow, first, last), account)


def _data_of(flows: Flows, binned: Binned) -> tuple[Whole, Whole]:
    """By subflow: its connection's first bin with data, and the one after its last; the same for none."""
    size = int(flows.connection.max(initial=-1)) + 1
    first, last = np.full(size, NEVER, dtype=np.int64), np.full(size, -NEVER, dtype=np.int64)
    some = binned.goodput_bytes > 0
    of = flows.connection[binned.flow[some]]
    np.minimum.at(first, of, binned.place[some])
    np.maximum.at(last, of, binned.place[some] + 1)
    first[first == NEVER] = 0
    return first[flows.connection], np.maximum(last, first)[flows.connection]


def _running(
    radio: Radio, flows: Flows, binned: Binned, stands: Standing, first: Whole, last: Whole
) -> tuple[Whole, Whole]:
    """Events and the subflows on their path between whose ends, and those of their connection's data, they lie; the end not included. A
    subflow that fell silent counts for ``BEFORE_S`` more: polls tell an event late, and some are a subflow's end."""
    start = np.maximum(flows.start_ns, first * binned.width_ns + binned.offset_ns)
    end = np.minimum(flows.end_ns + BEFORE_NS, last * binned.width_ns + binned.offset_ns)
    event_path, flow_path = np.array(radio.path, dtype=object), np.array(flows.path, dtype=object)
    events, of = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for path in dict.fromkeys(radio.path):
        mine = np.flatnonzero((event_path == path) & stands.apart)
        mine = mine[np.argsort(radio.t_ns[mine], kind="stable")]
        on = np.flatnonzero((flow_path == path) & (end > start))
        low = np.searchsorted(radio.t_ns[mine], start[on])
        whose, number = repeated(np.maximum(np.searchsorted(radio.t_ns[mine], end[on]) - low, 0))
        events.append(mine[low[whose] + number])
        of.append(on[whose])
    event, flow = np.concatenate(events), np.concatenate(of)
    order = np.lexsort((flow, radio.t_ns[event]))
    return event[order], flow[order]


def _rows(
    radio: Radio,
    flows: Flows,
    binned: Binned,
    rule: Rule,
    stands: Standing,
    event: Whole,
    flow: Whole,
    first: Whole,
    last: Whole,
) -> dict[str, Any]:
    width, t_ns = binned.width_ns, radio.t_ns[event]
    grid = Grid(width, binned.offset_ns)
    # Of its connection, not of itself: a subflow that the event silenced for good has no packets any more.
    end = last[flow] * width + binned.offset_ns
    found = recoveries(binned, flow, t_ns, stands.next_ns[event], end, rule.factor)
    lasted = np.array([round(_lasted_s(one) * SECOND) for one in found], dtype=np.int64)
    at = grid.first_at(t_ns)
    begun = np.maximum(grid.first_at(flows.start_ns[flow]), first[flow])
    before = Stretch(np.maximum(grid.first_at(t_ns - round(BEFORE_S * SECOND)), begun), at)
    during = Stretch(at, np.maximum(at, np.minimum(grid.first_at(t_ns + lasted), last[flow])))
    own = _goodput(binned, flow, before), _goodput(binned, flow, during)
    row, beside = _together(flows, flow)
    whole = [_whole(binned, row, beside, stretch, len(flow)) for stretch in (before, during)]
    other = _others(flows, binned, row, beside, flow, before)
    others = [_of_other(binned, other, stretch) for stretch in (before, during)]
    peak = _of_other(binned, other, during, greatest)
    handshake, peak_ms = flows.handshake_ms[flow], np.array([one.peak_ms for one in found])
    distance = stands.other_ns[event]
    shares = [mine / np.where(every > 0, every, np.nan) for mine, every in zip(own, whole, strict=True)]
    return {
        "probe": [None] * len(flow),  # who asks knows it
        "t_s": t_ns / SECOND,
        "path": _of(radio.path, event),
        "kind": _of(radio.kind, event),
        "size_db": np.abs(radio.change_db[event]),
        "both_modems": stands.both[event],
        "other_event_s": np.where(distance == NEVER, np.nan, distance / SECOND),
        "run": _of(flows.run, flow),
        "run_kind": _of(flows.kind, flow),
        "file": _of(flows.file, flow),
        "subflow": flows.subflow[flow],
        "gap_s": np.full(len(flow), rule.gap_s),
        "factor": np.full(len(flow), rule.factor),
        "t_r_s": np.array([one.t_r_s for one in found]),
        "why": [one.why for one in found],
        "silent_s": np.array([one.silent_s for one in found]),
        "rtt_method": _of(flows.rtt_method, flow),
        "handshake_rtt_ms": handshake,
        "rtt_before_ms": np.array([one.level_ms for one in found]),
        "rtt_peak_ms": peak_ms,
        "rtt_peak_normalised": peak_ms / np.where(handshake > 0, handshake, np.nan),
        "before_s": before.seconds(width),
        "during_s": during.seconds(width),
        "goodput_before_bit_per_s": own[0],
        "goodput_during_bit_per_s": own[1],
        "goodput_loss": _loss(*own),
        "connection_before_bit_per_s": whole[0],
        "connection_during_bit_per_s": whole[1],
        "connection_loss": _loss(*whole),
        "share_before": shares[0],
        "share_during": shares[1],
        "share_change": shares[1] - shares[0],
        "other_path": [flows.path[n] if n >= 0 else "" for n in other],
        "other_before_bit_per_s": _goodput(binned, other, before),
        "other_during_bit_per_s": _goodput(binned, other, during),
        "other_rtt_before_ms": others[0],
        "other_rtt_during_ms": others[1],
        "other_rtt_peak_ms": peak,
    }


def _of(names: Any, rows: Any) -> list[Any]:  # noqa: ANN401  (a sequence of texts, an array of numbers)
    return [names[n] for n in rows]


def _lasted_s(found: Recovery) -> float:
    """The effect: t_R, ``LEAST_S`` at least; where it did not end, as far as it was seen; ``UNKNOWN_S`` where nothing is known of it."""
    if not found.why:
        return min(max(found.t_r_s, LEAST_S), found.seen_s)
    return min(UNKNOWN_S, found.seen_s) if found.why in NO_LEVEL else found.seen_s


def _goodput(binned: Binned, flow: Whole, stretch: Stretch) -> Array:
    """In bit/s; NaN of no time, or no subflow."""
    index = _index(binned)
    carried = sums(binned.goodput_bytes, *index.between(np.maximum(flow, 0), stretch.low, stretch.high))
    seconds = stretch.seconds(binned.width_ns)
    return np.where((flow >= 0) & (seconds > 0), carried * 8 / np.where(seconds > 0, seconds, 1.0), np.nan)


def _index(binned: Binned) -> Index:
    ends = (int(binned.place.min()), int(binned.place.max())) if len(binned.place) else (0, 0)
    return Index(binned.flow, binned.place, *ends)


def _together(flows: Flows, flow: Whole) -> tuple[Whole, Whole]:
    """Each row with each subflow of its connection: rows and subflows."""
    order = np.argsort(flows.connection, kind="stable")
    sorted_ = flows.connection[order]
    low = np.searchsorted(sorted_, flows.connection[flow])
    row, number = repeated(np.searchsorted(sorted_, flows.connection[flow], side="right") - low)
    return row, order[low[row] + number]


def _whole(binned: Binned, row: Whole, beside: Whole, stretch: Stretch, count: int) -> Array:
    """Goodput of the rows' whole connections."""
    mine = _goodput(binned, beside, Stretch(stretch.low[row], stretch.high[row]))
    total = np.bincount(row, np.nan_to_num(mine), count)
    return np.where(stretch.high > stretch.low, total, np.nan)


def _others(flows: Flows, binned: Binned, row: Whole, beside: Whole, flow: Whole, before: Stretch) -> Whole:
    """The subflow on another path that carried most before, by row; -1 without one."""
    path = np.array(flows.path, dtype=object)
    mine = np.flatnonzero(path[beside] != path[flow[row]])
    row, beside = row[mine], beside[mine]
    carried = np.nan_to_num(_goodput(binned, beside, Stretch(before.low[row], before.high[row])))
    order = np.lexsort((-beside, carried))  # of those that carried the same the first
    other = np.full(len(flow), -1, dtype=np.int64)
    other[row[order]] = beside[order]
    return other


def _of_other(binned: Binned, other: Whole, stretch: Stretch, what: Any = medians) -> Array:  # noqa: ANN401  (one of two functions)
    """Of its bins' RTTs: the median of their means, or the greatest."""
    known = np.flatnonzero(np.isfinite(binned.rtt_mean_ms))
    ends = (int(binned.place.min()), int(binned.place.max())) if len(binned.place) else (0, 0)
    index = Index(binned.flow[known], binned.place[known], *ends)
    values = (binned.rtt_mean_ms if what is medians else binned.rtt_max_ms)[known]
    found = what(values, *index.between(np.maximum(other, 0), stretch.low, stretch.high))
    return np.where(other >= 0, found, np.nan)


def _loss(before: Array, during: Array) -> Array:
    """0 to 1, negative where it grew; NaN where there was nothing to lose."""
    return 1 - during / np.where(before > 0, before, np.nan)
