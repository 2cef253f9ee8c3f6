"""What one run's page draws: each subflow's goodput, round-trip time and share, with the events of that time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.one_run import RunAccount
from tandem_server.analysis.recorded import Event, SubflowSeries
from tandem_server.report.plot import Axis, Plot
from tandem_server.report.plots import round_top, span_log
from tandem_server.report.words import plain

Array = NDArray[np.float64]
COLOURS = 4
_GAP_S = 1.6
_MARKED = {
    "handover", "signal_drop", "signal_rise", "mobility_start", "mobility_stop",
    "path_lost", "path_restored", "subflow_lost", "subflow_restored", "modem_lost", "modem_restored",
}  # fmt: skip
"""Kinds that are lines in the plots; the table has all."""
_NAMES = 12
Names = dict[int, tuple[str, str]]


def plots(account: RunAccount) -> list[Plot]:
    """Goodput, share, round-trip time at the sender; none without records."""
    if account.recorded is None:
        return []
    flows = account.recorded.subflows
    at_probe = [s for s in flows if s.end == "probe" and len(s.t_s)]
    # In an upload the probe is the sender; the page shows what the server read where it read anything.
    sender = [s for s in flows if s.end == "server" and np.isfinite(s.rtt_ms).any()]
    rtt_of, where = (sender, "the server") if sender else (at_probe, "the probe")
    names = _named(sender + at_probe)
    gap_s = max(_GAP_S, 2.5 * (account.step_s or 0.0))
    made = [
        _goodput(account, at_probe, names, gap_s),
        _shares(account, at_probe, names, gap_s),
        _rtt(account, rtt_of, where, names, gap_s),
    ]
    for plot in made:
        _mark(plot, account.recorded.events)
    return made


def _goodput(account: RunAccount, flows: Sequence[SubflowSeries], names: Names, gap_s: float) -> Plot:
    known = [s.goodput_bit_per_s[np.isfinite(s.goodput_bit_per_s)] / 1e6 for s in flows]
    # A hole that is filled hands over in one sample what waited behind it: an axis up to there would hide everything else.
    top = max([1.0, *(float(np.quantile(v, 0.98)) for v in known if len(v))])
    plot = Plot("goodput", "Goodput of each subflow", Axis(0.0, round_top(top), "Mbit/s"), 0.0, account.end_s, 190, 2)
    for s in flows:
        plot.line(*names[id(s)], s.t_s, s.goodput_bit_per_s / 1e6, gap_s)
    if not any(len(v) for v in known):
        plot.empty = "No samples of its subflows are here."
    return plot


def _shares(account: RunAccount, flows: Sequence[SubflowSeries], names: Names, gap_s: float) -> Plot:
    """Stacked: each subflow's part of what all of them got at that time."""
    plot = Plot("share", "Share of each subflow", Axis(0.0, 100.0, "%"), 0.0, account.end_s, 120, 0)
    told = [s for s in flows if np.isfinite(s.goodput_bit_per_s).any()]
    if len(told) < 2:
        plot.empty = (
            "Not more than one subflow: it carried everything." if told else "No samples of its subflows are here."
        )
        return plot
    t = np.unique(np.concatenate([s.t_s for s in told]))
    rates = np.array([np.interp(t, s.t_s, np.nan_to_num(s.goodput_bit_per_s), left=0.0, right=0.0) for s in told])
    total = rates.sum(axis=0)
    busy = total > 0
    share = np.divide(rates, total, out=np.zeros_like(rates), where=busy) * 100
    top = np.cumsum(share, axis=0)
    breaks = np.flatnonzero((np.diff(t) > gap_s) | (busy[1:] != busy[:-1])) + 1
    for part in np.split(np.arange(len(t)), breaks):
        if len(part) > 1 and busy[part[0]]:
            for n, s in enumerate(told):
                low = top[n - 1][part] if n else np.zeros(len(part))
                plot.area(*names[id(s)], t[part], low, top[n][part])
    return plot


def _rtt(account: RunAccount, flows: Sequence[SubflowSeries], where: str, names: Names, gap_s: float) -> Plot:
    low, high = span_log([s.rtt_ms for s in flows])
    title = f"Round-trip time of each subflow, at {where}"
    plot = Plot("rtt", title, Axis(low, high, "ms", log=True), 0.0, account.end_s, 170, 1)
    for s in flows:
        plot.line(*names[id(s)], s.t_s, s.rtt_ms, gap_s)
    if not any(np.isfinite(s.rtt_ms).any() for s in flows):
        plot.empty = "No round-trip times are here."
    return plot


def _mark(plot: Plot, events: Sequence[Event]) -> None:
    by_name: dict[str, list[float]] = {}
    for event in events:
        if event.kind in _MARKED and 0 <= event.t_s <= plot.end_s:
            name = f"{plain(event.kind).replace('_', ' ')} {plain(event.path or '')}".strip()
            by_name.setdefault(name if name in by_name or len(by_name) < _NAMES else "further events", []).append(
                event.t_s
            )
    for name, times in by_name.items():
        plot.verticals(name, "event", times)


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
        out[which] = (name, f"op{min(order.index((path, number)), COLOURS - 1)}")
    return out
