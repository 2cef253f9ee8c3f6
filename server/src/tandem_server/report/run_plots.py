"""What one run's page draws: each subflow's goodput, share and round-trip time over one time, with the events of that time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tandem_server.analysis.one_run import RunAccount
from tandem_server.analysis.recorded import Event, SubflowSeries
from tandem_server.report.figures.hues import BAD, OPERATORS
from tandem_server.report.figures.marks import GAP_S, Area, Mark, Moments, Trace
from tandem_server.report.figures.scale import Axis, round_top
from tandem_server.report.figures.sheet import Panel, Sheet
from tandem_server.report.words import plain

_MARKED = {
    "handover", "signal_drop", "signal_rise", "mobility_start", "mobility_stop",
    "path_lost", "path_restored", "subflow_lost", "subflow_restored", "modem_lost", "modem_restored",
}  # fmt: skip
"""Kinds that are lines in the plots; the table has all."""
_NAMES = 12
Names = dict[int, tuple[str, str]]


def plots(account: RunAccount) -> Sheet | None:
    """Goodput, share, round-trip time at the sender; None without records of subflows."""
    if account.recorded is None:
        return None
    flows = account.recorded.subflows
    at_probe = [s for s in flows if s.end == "probe" and np.isfinite(s.goodput_bit_per_s).any()]
    # In an upload the probe is the sender; the page shows what the server read where it read anything.
    sender = [s for s in flows if s.end == "server" and np.isfinite(s.rtt_ms).any()]
    rtt_of, where = (sender, "server") if sender else ([s for s in flows if s.end == "probe"], "probe")
    names = _named([s for s in flows if len(s.t_s)])
    gap_s = max(GAP_S, 2.5 * (account.step_s or 0.0))
    x = Axis("seconds since the run began", low=0, high=account.end_s)
    # A hole that is filled hands over in one sample what waited behind it: an axis up to there would hide everything else.
    rates = {id(s): s.goodput_bit_per_s / 1e6 for s in at_probe}
    top = round_top([float(np.nanquantile(v, 0.98)) for v in rates.values()])
    goodput = [Trace(names[id(s)][0], s.t_s, rates[id(s)], gap_s) for s in at_probe]
    rtt = [Trace(names[id(s)][0], s.t_s, s.rtt_ms, gap_s) for s in rtt_of if np.isfinite(s.rtt_ms).any()]
    panels = [
        Panel("Goodput of each subflow", goodput, x, Axis("Mbit/s", low=0, high=top), height=190),
        Panel(
            "Share of each subflow", list(_shares(at_probe, names, gap_s)), x, Axis("%", low=0, high=100), height=110
        ),
        Panel(f"Round-trip time of each subflow, at the {where}", rtt, x, Axis("ms", log=True), height=170),
    ]
    events = _marks(account.recorded.events, account.end_s)
    kept = [Panel(p.title, [*p.marks, *events], p.x, p.y, height=p.height) for p in panels if p.marks]
    hues = dict(names.values()) | {mark.series: BAD for mark in events}
    return Sheet(kept, hues=hues, live=True) if kept else None


def _shares(flows: Sequence[SubflowSeries], names: Names, gap_s: float) -> Sequence[Mark]:
    """Stacked: each subflow's part of what all of them got at that time; nothing of one that carried everything."""
    if len(flows) < 2:
        return []
    t = np.unique(np.concatenate([s.t_s for s in flows]))
    rates = np.array([np.interp(t, s.t_s, np.nan_to_num(s.goodput_bit_per_s), left=0.0, right=0.0) for s in flows])
    total = rates.sum(axis=0)
    busy = total > 0
    share = np.divide(rates, total, out=np.zeros_like(rates), where=busy) * 100
    top = np.cumsum(share, axis=0)
    breaks = np.flatnonzero((np.diff(t) > gap_s) | (busy[1:] != busy[:-1])) + 1
    marks = []
    for part in np.split(np.arange(len(t)), breaks):
        if len(part) > 1 and busy[part[0]]:
            for n, s in enumerate(flows):
                low = top[n - 1][part] if n else np.zeros(len(part))
                marks.append(Area(names[id(s)][0], t[part], low, top[n][part]))
    return marks


def _marks(events: Sequence[Event], end_s: float) -> list[Mark]:
    by_name: dict[str, list[float]] = {}
    for event in events:
        if event.kind in _MARKED and 0 <= event.t_s <= end_s:
            name = f"{plain(event.kind).replace('_', ' ')} {plain(event.path or '')}".strip()
            known = name in by_name or len(by_name) < _NAMES
            by_name.setdefault(name if known else "further events", []).append(event.t_s)
    return [Moments(name, times) for name, times in by_name.items()]


def _named(flows: Sequence[SubflowSeries]) -> dict[int, tuple[str, str]]:
    """By ``id`` of each: what it is called, and its colour. The two ends number subflows in ways of their own: alike are the first of a
    path at either end, the second, and so on."""
    places: dict[int, tuple[str, int]] = {}
    counted: dict[tuple[str, str], int] = {}
    for s in sorted(flows, key=lambda s: (s.path or "", s.end, s.subflow)):
        at = (s.end, s.path or "")
        places[id(s)] = (s.path or "", counted.get(at, 0))
        counted[at] = counted.get(at, 0) + 1
    several = {path for (_, path), count in counted.items() if count > 1}
    operator = {s.path or "": s.operator for s in flows if s.operator}
    order = sorted(set(places.values()))
    out = {}
    for which, (path, number) in places.items():
        of = operator.get(path)
        name = plain(path or "of no known path") + (f" ({plain(of)})" if of and of != path else "")
        name += f", subflow {number + 1}" if path in several else ""
        out[which] = (name, OPERATORS[min(order.index((path, number)), len(OPERATORS) - 1)])
    return out
