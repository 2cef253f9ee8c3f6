"""Mohan et al. §4.2: MPTCP and TCP by mobility class, Figures 5 to 7."""

from __future__ import annotations

import numpy as np

from tandem_server.analysis.delays import Histogram, pooled
from tandem_server.analysis.material import Bins, Material
from tandem_server.analysis.measured import Download
from tandem_server.analysis.series import Array, differences, of_operators, summed, utilisation
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import BINS, DOWNLOADS, FLOWS, ROUND_TRIPS, Figure, LackingError
from tandem_server.report.figures.marks import Heat, Line
from tandem_server.report.figures.papers.chen_delays import DELAYS, WAITED, untold
from tandem_server.report.figures.papers.mohan_1_tables import WHO, in_the_wild
from tandem_server.report.figures.papers.mohan_2_events import CLASS_HUES, SPEED
from tandem_server.report.figures.sheet import Axis, Panel, Sheet, operator_hues

SIDE = 10
BELOW = Axis("share of values below", low=0, high=1.03)


def _kind(d: Download) -> str:
    return "MPTCP" if d.kind == "mptcp" else f"TCP {d.of.operator(d.primary)}"


def _runs(m: Material) -> list[Download]:
    found = [d for d in in_the_wild(m) if d.of.campaign != "mohan-congestion"]
    if not found:
        raise LackingError("downloads at times of a known mobility class")
    return sorted(found, key=lambda d: (d.kind, d.of.operator(d.primary)))


def figure_5a(m: Material) -> Sheet:
    """Goodput."""
    runs = _runs(m)
    names = grouping.classes(d.of.mobility for d in runs)
    values = [
        (_kind(d), names.index(d.of.mobility or ""), d.goodput_bit_per_s / 1e6)
        for d in runs
        if d.goodput_bit_per_s is not None
    ]
    axis = Axis("", names=tuple(SPEED[name] for name in names))
    note = "Medians over runs with 95 % bootstrap intervals."
    return Sheet(
        [Panel("", list(grouping.bars(values)), axis, Axis("goodput, Mbit/s"))], note, operator_hues(m.named())
    )


def figure_5b(m: Material) -> Sheet:
    """Bytes in flight."""
    runs = {d.of.run: d for d in _runs(m)}
    names = grouping.classes(d.of.mobility for d in runs.values())
    values = []
    for run, total in _whole(m.bins).items():
        if (d := runs.get(run)) is not None:
            values.append((_kind(d), names.index(d.of.mobility or ""), total / 1e3))
    if not values:
        raise LackingError("bins of captures of downloads at times of a known mobility class")
    axis = Axis("", names=tuple(SPEED[name] for name in names))
    note = "Medians over runs of each run’s median over its bins, all subflows together; 95 % bootstrap intervals."
    return Sheet(
        [Panel("", list(grouping.bars(sorted(values))), axis, Axis("bytes in flight, kB"))],
        note,
        operator_hues(m.named()),
    )


def _whole(bins: list[Bins]) -> dict[str, float]:
    """Each run's median, over its bins, of bytes in flight on all its subflows together."""
    by_run: dict[str, list[tuple[Array, Array]]] = {}
    for one in bins:
        if one.path is not None:
            by_run.setdefault(one.run, []).append((one.t_s, one.in_flight_bytes))
    totals = ((run, summed(found)[1]) for run, found in by_run.items())
    return {run: float(np.median(total)) for run, total in totals if len(total)}


def figure_5c(m: Material) -> Sheet:
    """Queueing delay."""
    values: dict[str, list[tuple[str, float]]] = {"MPTCP": [], "TCP": []}
    for d in _runs(m):
        for series in m.at_best(d.of.run):
            known = series.rtt_ms[np.isfinite(series.rtt_ms)]
            if len(known):
                values[d.kind.upper()] += [(SPEED[d.of.mobility or ""], float(v)) for v in known - known.min()]
    return _panels(
        values,
        Axis("queueing delay, ms", log=True, low=1),
        f"RTT less the subflow’s least one in the run; n: samples. {m.source(d.of.run for d in _runs(m))}",
    )


def _panels(values: dict[str, list[tuple[str, float]]], axis: Axis, note: str) -> Sheet:
    order = list(CLASS_HUES)
    panels = [
        Panel(title, grouping.distributions(sorted(found, key=lambda v: order.index(v[0]))), axis, BELOW)
        for title, found in values.items()
        if found
    ]
    if not panels:
        raise LackingError("records of subflows in downloads at times of a known mobility class")
    return Sheet(panels, note, CLASS_HUES)


def figure_6(m: Material) -> Sheet:
    """What each subflow carried."""
    runs = {d.of.run: d for d in _runs(m) if d.kind == "mptcp"}
    found: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for kit in m.each:
        first, second, *_ = *kit.named(), "", ""
        if not second:
            continue
        # Kits with the same two operators are one, in whichever order they have them.
        operators = (second, first) if (second, first) in found else (first, second)
        for d in (d for d in kit.downloads if d.of.run in runs):
            seconds = of_operators(kit.of_run(d.of.run, "probe"), "goodput_bit_per_s")
            mine = found.setdefault(operators, {}).setdefault(d.of.mobility or "", [])
            mine += utilisation(seconds, *operators)
    if not any(len(kit.named()) > 1 for kit in m.each):
        raise LackingError("two operators")
    panels = []
    for operators, name in ((o, n) for o, by in found.items() for n in grouping.classes(n for n in by if by[n])):
        pairs = found[operators][name]
        counts: dict[tuple[int, int], float] = {}
        for x, y in pairs:
            cell = min(SIDE - 1, int(x * SIDE)), min(SIDE - 1, int(y * SIDE))
            counts[cell] = counts.get(cell, 0.0) + 1 / len(pairs)
        of = f"{' and '.join(operators)}, " if len(found) > 1 else ""
        axes = [Axis(f"{operator}, share of the best seconds", low=0, high=1) for operator in operators]
        panels.append(Panel(f"{of}{SPEED[name]}, n={len(pairs)} s", [Heat(counts, SIDE, len(pairs))], axes[0], axes[1]))
    if not panels:
        raise LackingError("the probe’s records of subflows in MPTCP downloads at times of a known mobility class")
    note = (
        "Each second of the MPTCP downloads: what either operator carried, over what both did in the run’s best seconds (95 % quantile). "
        "On the line from the upper left to the lower right corner both together did as in those; its "
        "middle: both alike; near an axis: one alone."
    )
    return Sheet(panels, note)


def figure_7a(m: Material) -> Sheet:
    """Gap between the subflows' round-trip times."""
    values = []
    for d in _runs(m):
        if d.kind == "mptcp":
            gaps = differences(of_operators(m.at_best(d.of.run), "rtt_ms"))
            values += [(SPEED[d.of.mobility or ""], gap) for gap in gaps]
    return _panels(
        {"": values},
        Axis("RTT difference between subflows, ms", log=True, low=1),
        "Each second in which a subflow had samples; one that was silent then counts with the greater of its RTTs before and after. "
        f"{m.source(d.of.run for d in _runs(m) if d.kind == 'mptcp')}",
    )


def figure_7b(m: Material) -> Sheet:
    """Out-of-order queue."""
    runs = {d.of.run: d for d in _runs(m) if d.kind == "mptcp"}
    values = [
        (SPEED[runs[one.run].of.mobility or ""], float(v) / 1e3)
        for one in m.bins
        if one.path is None and one.run in runs
        for v in one.reorder_queue_bytes[np.isfinite(one.reorder_queue_bytes)]
    ]
    if not values:
        raise LackingError("captures of every path of MPTCP downloads at times of a known mobility class")
    return _panels(
        {"": values},
        Axis("out-of-order queue, kB", zero=True),
        "Of the data level, each bin of the captures at the receiver, of all paths together; n: bins.",
    )


def figure_7c(m: Material) -> Sheet:
    """How long packets stayed in that queue."""
    runs = {d.of.run: d for d in _runs(m) if d.kind == "mptcp"}
    found: dict[str, list[Histogram]] = {}
    for one in m.bins:
        if one.path is None and one.waits is not None and one.run in runs:
            found.setdefault(runs[one.run].of.mobility or "", []).append(one.waits)
    if not found:
        raise LackingError("waits of packets, by captures of every path of MPTCP downloads at times of a known class")
    lines = []
    for name in grouping.classes(found):
        whole = pooled(found[name])
        # What came in order waited 0 ms, which has no place on an axis of logarithms: the line begins above it.
        points = [(ms, 1 - longer) for ms, longer in whole.above() if ms > 0]
        lines.append(Line(SPEED[name], points, n=whole.n, step=True))
    x = Axis("wait in the out-of-order queue, ms", log=True)
    note = f"{WAITED} n: packets. {untold(one for every in found.values() for one in every)}"
    return Sheet([Panel("", lines, x, Axis("share of packets that waited less", low=0, high=1.03))], note, CLASS_HUES)


FIGURES = (
    Figure("mohan-5a", WHO, "Figure 5 (a)", "Goodput by mobility class", (DOWNLOADS,), figure_5a),
    Figure("mohan-5b", WHO, "Figure 5 (b)", "Bytes in flight by mobility class", (DOWNLOADS, BINS), figure_5b),
    Figure("mohan-5c", WHO, "Figure 5 (c)", "Queueing delay by mobility class", (DOWNLOADS, ROUND_TRIPS), figure_5c),
    Figure("mohan-6", WHO, "Figure 6", "Utilisation of the subflows by mobility class", (DOWNLOADS, FLOWS), figure_6),
    Figure("mohan-7a", WHO, "Figure 7 (a)", "RTT difference between subflows", (DOWNLOADS, ROUND_TRIPS), figure_7a),
    Figure("mohan-7b", WHO, "Figure 7 (b)", "Out-of-order queue at the receiver", (DOWNLOADS, BINS), figure_7b),
    Figure("mohan-7c", WHO, "§4.2", "How long packets stay in the out-of-order queue", (DOWNLOADS, DELAYS), figure_7c),
)
