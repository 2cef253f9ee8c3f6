"""The plots of the page, each from an evaluated campaign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.runs import Run
from tandem_server.analysis.truth import Link
from tandem_server.report.plot import Axis, Plot

Array = NDArray[np.float64]
STEP_S = 0.1


def radio(e: Evaluation, css_of: dict[str, str], quantity: str) -> Plot:
    """RSRP or SINR of every path, with its events: handovers as lines over the height, drops as dots."""
    rsrp = quantity == "rsrp_dbm"
    columns = {path: s.rsrp_dbm if rsrp else s.sinr_db for path, s in e.recorded.radio.items()}
    low, high = _span(list(columns.values()), (-120.0, -80.0) if rsrp else (-5.0, 25.0), 5.0)
    plot = Plot(
        quantity,
        "Received power, RSRP" if rsrp else "Signal to noise, SINR",
        Axis(low, high, "dBm" if rsrp else "dB"),
        0.0,
        e.end_s,
        190 if rsrp else 130,
        0 if rsrp else 1,
    )
    for path, series in e.recorded.radio.items():
        css = css_of.get(series.operator, "op0")
        own = [ev for ev in e.recorded.events if ev.operator == series.operator]
        handovers = [ev.t_s for ev in own if ev.kind == "handover"]
        plot.verticals(f"handover {series.operator}", css, handovers)
        plot.line(f"operator {series.operator}", css, series.t_s, columns[path], 2.5)
    for path, series in e.recorded.radio.items() if rsrp else ():
        css = css_of.get(series.operator, "op0")
        drops = np.array([ev.t_s for ev in e.events("signal_drop") if ev.operator == series.operator], dtype=np.float64)
        if len(drops) and len(series.t_s):
            nearest = np.clip(np.searchsorted(series.t_s, drops - 0.01), 0, len(series.t_s) - 1)
            plot.dots(f"signal drop {series.operator}", css, drops, columns[path][nearest])
    if not any(np.isfinite(c).any() for c in columns.values()):
        plot.empty = "No poll gave this quantity."
    return plot


def together(e: Evaluation, css_of: dict[str, str]) -> Plot:
    """Capacity offered by all operators together against what MPTCP got, its subflows stacked."""
    links = _links(e)
    runs = [r for r in e.runs if r.kind == "mptcp"]
    offered = _sum_of(links)
    plot = Plot("together", "All operators together", Axis(0.0, _top(e, offered), "Mbit/s"), 0.0, e.end_s, 200, 1)
    if offered is not None:
        plot.area("capacity offered", "offered", offered[0], np.zeros(len(offered[0])), offered[1])
    _stack(plot, [(r, "") for r in runs], e, css_of, None)
    if not runs:
        plot.empty = "No MPTCP run."
    return plot


def one_operator(e: Evaluation, css_of: dict[str, str], operator: str) -> Plot:
    """One operator's capacity against what MPTCP’s subflow and the TCP run got on it, stacked."""
    link = e.campaign.truth.links.get(operator) if e.campaign.truth else None
    offered = None if link is None else (link.t_s, link.down_bit_per_s / 1e6)
    plot = Plot(
        f"on-{operator}", f"Operator {operator}", Axis(0.0, _top(e, offered, operator), "Mbit/s"), 0.0, e.end_s, 150, 1
    )
    if offered is not None:
        plot.area("capacity offered", "offered", offered[0], np.zeros(len(offered[0])), offered[1])
    runs = [(r, "MPTCP’s subflow" if r.kind == "mptcp" else "TCP") for r in e.runs]
    _stack(plot, runs, e, css_of, operator)
    return plot


def rtt(e: Evaluation, css_of: dict[str, str]) -> Plot:
    """Round-trip times as the sender's kernel saw them, of MPTCP's subflows and of TCP; handovers as lines,
    signal drops as dots at the foot, one row an operator."""
    flows = [s for s in e.recorded.subflows if s.end == "server"]
    kinds = {r.id: r.kind for r in e.runs}
    low, high = span_log([s.rtt_ms for s in flows])
    plot = Plot("rtt", "Round-trip time at the sender", Axis(low, high, "ms", log=True), 0.0, e.end_s, 200, 0)
    for row, (operator, css) in enumerate(css_of.items()):
        times = [ev.t_s for ev in e.events("handover") if ev.operator == operator]
        plot.verticals(f"handover {operator}", css, times)
        drops = np.array([ev.t_s for ev in e.events("signal_drop") if ev.operator == operator], dtype=np.float64)
        plot.dots(f"signal drop {operator}", css, drops, np.full(len(drops), low * 1.08 ** (row * 2 + 1)))
    for kind, words, extra in (("tcp", "TCP on {}", " tcp"), ("mptcp", "MPTCP’s subflow on {}", "")):
        for operator, css in css_of.items():
            own = [s for s in flows if s.operator == operator and kinds.get(s.run) == kind and len(s.t_s)]
            if own:
                t, v = _joined([(s.t_s, s.rtt_ms) for s in own])
                plot.line(words.format(operator), css + extra, t, v, 1.0)
    if not any(np.isfinite(s.rtt_ms).any() for s in flows):
        plot.empty = "The server recorded no round-trip times."
    return plot


def _links(e: Evaluation) -> list[Link]:
    if e.campaign.truth is None:
        return []
    return [link for o in dict.fromkeys(e.campaign.operators.values()) if (link := e.campaign.truth.links.get(o))]


def _sum_of(links: Sequence[Link]) -> tuple[Array, Array] | None:
    if not links:
        return None
    t = np.unique(np.concatenate([link.t_s for link in links]))
    total = np.zeros(len(t))
    for link in links:
        held = np.clip(np.searchsorted(link.t_s, t, side="right") - 1, 0, None)
        total += link.down_bit_per_s[held]
    return t, total / 1e6


def _stack(
    plot: Plot, runs: Sequence[tuple[Run, str]], e: Evaluation, css_of: dict[str, str], operator: str | None
) -> None:
    """Runs that overlap lie on top of each other: each starts where the sum of those before it ends, at every moment."""
    below: list[tuple[Array, Array]] = []
    for run, name in sorted(runs, key=lambda pair: (pair[0].kind == "tcp", pair[0].start_s or 0.0)):
        for flow in e.recorded.of_run(run.id, "probe"):
            if (operator is not None and flow.operator != operator) or len(flow.t_s) < 2:
                continue
            t, rate = _regular(flow)
            base = np.zeros(len(t))
            for other_t, other_rate in below:
                base += np.interp(t, other_t, other_rate, left=0.0, right=0.0)
            css = css_of.get(flow.operator or "", "op0") + (" tcp" if run.kind == "tcp" else "")
            plot.area(name or f"MPTCP on {flow.operator}", css, t, base, base + rate)
            below.append((t, rate))


def _regular(flow: SubflowSeries) -> tuple[Array, Array]:
    """Goodput in Mbit/s, an absent value as nothing got."""
    return flow.t_s, np.nan_to_num(flow.goodput_bit_per_s) / 1e6


def _joined(series: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Series one after the other in time with a NaN between them, so that no line joins two runs."""
    t, v = [], []
    for a, b in sorted(series, key=lambda pair: float(pair[0][0])):
        t += [a, a[-1:]]
        v += [b, np.array([np.nan])]
    return np.concatenate(t), np.concatenate(v)


def _top(e: Evaluation, offered: tuple[Array, Array] | None, operator: str | None = None) -> float:
    """The axis' end: what was offered, and nearly all that was got. A hole that is filled hands over in one sample what waited behind
    it, several times the link's rate; an axis up to there would hide everything else, so such samples are cut off."""
    tops = [float(np.max(offered[1]))] if offered is not None and len(offered[1]) else []
    sums: dict[str, Array] = {}
    for s in e.recorded.subflows:
        if s.end == "probe" and operator in (None, s.operator) and np.isfinite(s.goodput_bit_per_s).any():
            most = np.nanquantile(s.goodput_bit_per_s, 0.95) / 1e6
            tops.append(float(most))
            sums[s.run] = np.append(sums.get(s.run, np.empty(0)), most)
    if operator is None:
        tops += [float(np.sum(v)) for v in sums.values()]
    return round_top(max([1.0, *tops]))


def round_top(top: float) -> float:
    """A round end of an axis, a little above ``top``, which is above 0."""
    step = 10 ** np.floor(np.log10(top))
    return float(np.ceil(top * 1.04 / (step / 2)) * step / 2)


def _span(columns: Sequence[Array], default: tuple[float, float], step: float) -> tuple[float, float]:
    some = [c[np.isfinite(c)] for c in columns]
    joined = np.concatenate(some) if some else np.empty(0)
    if len(joined) == 0:
        return default
    low, high = float(np.floor(joined.min() / step) * step), float(np.ceil(joined.max() / step) * step)
    return (low, high) if high > low else (low, low + step)


def span_log(columns: Sequence[Array]) -> tuple[float, float]:
    """The ends of a logarithmic axis for these values, in ms."""
    some = [c[np.isfinite(c) & (c > 0)] for c in columns]
    joined = np.concatenate(some) if some else np.empty(0)
    if len(joined) == 0:
        return 10.0, 1000.0
    low, high = float(joined.min()) * 0.8, float(joined.max()) * 1.25
    return low, max(high, low * 4)
