"""Mohan et al. §4.2, §5: MPTCP and TCP by mobility class, events and normalised round-trip times, video, congestion control: Figures 5 to
10."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tandem_server.analysis.estimates import Histogram, ellipse, pooled
from tandem_server.analysis.events import (
    BEFORE_S,
    HELD_S,
    LASTS_S,
    NO_LEVEL,
    SILENT_S,
    NetworkEvent,
    apart,
    factor_per_2_db,
)
from tandem_server.analysis.material import Bins, Material
from tandem_server.analysis.measured import Download, Play
from tandem_server.analysis.radio_packets import GAP_S
from tandem_server.analysis.series import Array, differences, of_operators, summed, utilisation
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import (
    BINS,
    DOWNLOADS,
    EVENTS,
    FLOWS,
    PLAYS,
    ROUND_TRIPS,
    LackingError,
    figures,
)
from tandem_server.report.figures.marks import Heat, Level, Line, Mark, Oval
from tandem_server.report.figures.papers.chen import DELAYS, WAITED, unknown_waits
from tandem_server.report.figures.papers.mohan_events import CLASS_HUES, SPEED, WHO, in_the_wild
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
    note = "Medians over runs with 95 % bootstrap intervals."
    return Sheet([_bars(values, names, "goodput, Mbit/s")], note, operator_hues(m.named()))


def _bars(values: Iterable[grouping.Triple], names: Sequence[str], y: str, *more: Mark) -> Panel:
    """At each mobility class of ``names``, which are the values' places."""
    across = Axis("", names=tuple(SPEED[name] for name in names))
    return Panel("", [*grouping.bars(values), *more], across, Axis(y))


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
    note = "Medians over runs of each run’s median over its bins, all subflows together; 95 % bootstrap intervals."
    return Sheet([_bars(sorted(values), names, "bytes in flight, kB")], note, operator_hues(m.named()))


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
    ]
    lacking = "records of subflows in downloads at times of a known mobility class"
    return grouping.sheet(panels, lacking, note, CLASS_HUES)


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
    lacking = "the probe’s records of subflows in MPTCP downloads at times of a known mobility class"
    note = (
        "Each second of the MPTCP downloads: what either operator carried, over what both did in the run’s best seconds (95 % quantile). "
        "On the line from the upper left to the lower right corner both together did as in those; its "
        "middle: both alike; near an axis: one alone."
    )
    return grouping.sheet(panels, lacking, note)


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
    note = f"{WAITED} n: packets. {unknown_waits(one for every in found.values() for one in every)}"
    return Sheet([Panel("", lines, x, Axis("share of packets that waited less", low=0, high=1.03))], note, CLASS_HUES)


NAMES = {"drop": "after a signal drop", "handover": "after a handover"}
ELSE = "without an event"
MOST_S = 120.0


def _normalised(m: Material) -> list[tuple[str, NetworkEvent | None, list[float]]]:
    """Samples within t_R of each event over the subflow's first RTT; and of subflows in which no event was felt."""
    found = [one for kit in m.each for one in _of_kit(kit)]
    if not any(event for _, event, _ in found):
        raise LackingError("signal drops or handovers, apart from others, during MPTCP downloads")
    return found


def _of_kit(m: Material) -> list[tuple[str, NetworkEvent | None, list[float]]]:
    found: list[tuple[str, NetworkEvent | None, list[float]]] = []
    kept = [e for o in m.named() for e in apart([e for e in m.events if e.operator == o], GAP_S)]
    for d in m.downloads:
        if d.kind != "mptcp":
            continue
        for s in m.at_best(d.of.run):
            known = s.rtt_ms[np.isfinite(s.rtt_ms)]
            first = d.handshake_ms.get(s.path or "") or (float(known[0]) if len(known) else 0.0)
            if first <= 0:
                continue
            until = s.t_s[-1] + BEFORE_S  # some events are a subflow's end
            felt = [e for e in m.events if e.operator == s.operator and s.t_s[0] - LASTS_S <= e.t_s <= until]
            if not felt:
                found.append((ELSE, None, [float(v) / first for v in known]))
            for event in (e for e in felt if e in kept):
                effect = m.recovery(d.of.run, s, event)
                if effect.why in NO_LEVEL:
                    continue
                inside = (s.t_s >= event.t_s) & (s.t_s <= event.t_s + effect.lasted_s) & np.isfinite(s.rtt_ms)
                found.append((NAMES[event.kind], event, [float(v) / first for v in s.rtt_ms[inside]]))
    return found


_NOTE = (
    "RTT of the affected subflow over that of its handshake (else its first sample), "
    f"within t_R of the event (until it is back for {HELD_S:g} s; more than {SILENT_S:g} s without a sample is not back), "
    "a second at least, not beyond the operator’s next event; "
    f"events nearer than {GAP_S:g} s to another one of the operator are left out."
)


def _source(m: Material) -> str:
    return m.source(d.of.run for d in m.downloads if d.kind == "mptcp" and m.at_best(d.of.run))


def figure_8a(m: Material) -> Sheet:
    """By event."""
    found = _normalised(m)
    order = [*NAMES.values(), ELSE]
    values = sorted(((name, v) for name, _, samples in found for v in samples), key=lambda pair: order.index(pair[0]))
    counts = ", ".join(
        f"{word}: {sum(name == one for one, _, _ in found)}"
        for name, word in ((NAMES["drop"], "drops"), (NAMES["handover"], "handovers"))
    )
    y = Axis("share of samples below", low=0, high=1.03)
    lines = grouping.distributions(values, dashed=(ELSE,))
    return Sheet(
        [Panel("", lines, Axis("normalised RTT", log=True), y)],
        f"{_NOTE} {_source(m)} n: samples; {counts}.",
        {ELSE: "#5c6570"},
    )


def figure_8b(m: Material) -> Sheet:
    """By size of the drop."""
    drops = [
        (abs(e.change_db), samples)
        for _, e, samples in _normalised(m)
        if e is not None and e.change_db is not None and samples
    ]
    if not drops:
        raise LackingError("signal drops, apart from others, during MPTCP downloads")
    peaks = [(size, max(samples)) for size, samples in drops]
    factor = factor_per_2_db([size for size, _ in peaks], [peak for _, peak in peaks])
    told = (
        "too few sizes for a factor"
        if factor is None
        else f"× {factor:.2f} for 2 dB more (least squares of the logarithms; the paper: 1.7)"
    )
    boxes = grouping.boxes(("drops", 2.0 * round(size / 2), v) for size, samples in drops for v in samples)
    note = f"{_NOTE} {_source(m)} Sizes to 2 dB; n: samples; drops: {len(drops)}; peaks: {told}."
    return Sheet([Panel("", boxes, Axis("size of the drop, dB"), Axis("normalised RTT", log=True))], note)


def _plays(m: Material) -> tuple[list[Play], list[str]]:
    plays = [p for p in m.plays if p.kind == "mptcp" and p.of.mobility is not None and p.segment_s is not None]
    if not plays:
        raise LackingError("plays by MPTCP at times of a known mobility class")
    return sorted(plays, key=lambda p: p.segment_s or 0), grouping.classes(p.of.mobility for p in plays)


def figure_9a(m: Material) -> Sheet:
    """What comes when."""
    plays, _ = _plays(m)
    marks = []
    for length in dict.fromkeys(p.segment_s for p in plays):
        first = next((p for p in plays if p.segment_s == length and len(p.came) > 1), None)
        if first is not None:
            whose = "".join(f", {kit.probe}" for kit in m.kits if any(p is first for p in kit.plays))
            points = [(t, b / 1e6) for t, b in first.came if t <= MOST_S]
            marks.append(Line(f"{length} s segments{whose}", points, n=len(first.came), step=True))
    note = f"The first play of each length of segment, its first {MOST_S:g} s: what had come by when; n: its segments."
    axes = Axis("time since the manifest was asked for, s", zero=True), Axis("video received, MB", zero=True)
    return grouping.sheet([Panel("", marks, *axes)], "plays by MPTCP that tell their segments", note)


def figure_9b(m: Material) -> Sheet:
    """Goodput of video."""
    plays, names = _plays(m)
    values = [
        (f"{p.segment_s} s segments", names.index(p.of.mobility or ""), p.goodput_bit_per_s / 1e6)
        for p in plays
        if p.goodput_bit_per_s is not None
    ]
    ladder = {height: rate for p in plays for height, rate in p.ladder.items()}
    levels = [
        Level(word, ladder[h] / 1e6) for h, word in ((1080, "needed for 1080p"), (2160, "needed for 4K")) if h in ladder
    ]
    note = (
        "Goodput of the segments while they come; medians over plays, 95 % bootstrap intervals. Dotted: "
        "bitrates of the presentation, as far as played."
    )
    return Sheet([_bars(values, names, "goodput, Mbit/s", *levels)], note)


def figure_9c(m: Material) -> Sheet:
    """Switches."""
    plays, names = _plays(m)
    values = [(f"{p.segment_s} s segments", names.index(p.of.mobility or ""), p.switches_per_minute) for p in plays]
    return Sheet([_bars(values, names, "quality switches a minute")], "Medians over plays, 95 % bootstrap intervals.")


def figure_10(m: Material) -> Sheet:
    """Throughput and delay by controller."""
    runs = [d for d in in_the_wild(m) if d.kind == "mptcp" and d.controller and d.goodput_bit_per_s is not None]
    panels = []
    for n, name in enumerate(grouping.classes(d.of.mobility for d in runs)):
        marks = [oval for word in _controllers(runs) if (oval := _oval(runs, name, word)) is not None]
        axes = Axis("queueing delay, ms (less to the right)", flipped=True), Axis("goodput, Mbit/s")
        panels.append(Panel(f"({'abcd'[n]}) {SPEED[name]}", marks, *axes))
    lacking = "three MPTCP downloads of one controller at times of one mobility class"
    note = (
        "Ellipses: one standard deviation of a Gaussian over the runs; asterisks: medians; better to the "
        "upper right. Queueing delay: median RTT less "
        "the least, at the sender, over the paths by what they carried."
    )
    return grouping.sheet(panels, lacking, note)


def _controllers(runs: list[Download]) -> list[str]:
    return list(dict.fromkeys(d.controller for d in runs))


def _oval(runs: list[Download], name: str, word: str) -> Oval | None:
    mine = [
        (delay, (d.goodput_bit_per_s or 0.0) / 1e6)
        for d in runs
        if d.of.mobility == name and d.controller == word and (delay := d.queueing_ms()) is not None
    ]
    if (found := ellipse([x for x, _ in mine], [y for _, y in mine])) is None:
        return None
    middle = float(np.median([x for x, _ in mine])), float(np.median([y for _, y in mine]))
    return Oval(grouping.controller(word), found, middle)


FIGURES = figures(
    WHO,
    ("mohan-5a", "Figure 5 (a)", "Goodput by mobility class", figure_5a, DOWNLOADS),
    ("mohan-5b", "Figure 5 (b)", "Bytes in flight by mobility class", figure_5b, DOWNLOADS, BINS),
    ("mohan-5c", "Figure 5 (c)", "Queueing delay by mobility class", figure_5c, DOWNLOADS, ROUND_TRIPS),
    ("mohan-6", "Figure 6", "Utilisation of the subflows by mobility class", figure_6, DOWNLOADS, FLOWS),
    ("mohan-7a", "Figure 7 (a)", "RTT difference between subflows", figure_7a, DOWNLOADS, ROUND_TRIPS),
    ("mohan-7b", "Figure 7 (b)", "Out-of-order queue at the receiver", figure_7b, DOWNLOADS, BINS),
    ("mohan-7c", "§4.2", "How long packets stay in the out-of-order queue", figure_7c, DOWNLOADS, DELAYS),
    ("mohan-8a", "Figure 8 (a)", "Normalised RTT after events", figure_8a, DOWNLOADS, EVENTS, ROUND_TRIPS),
    ("mohan-8b", "Figure 8 (b)", "Normalised RTT by the size of the drop", figure_8b, DOWNLOADS, EVENTS, ROUND_TRIPS),
    ("mohan-9a", "Figure 9 (a)", "Burstiness by length of segment", figure_9a, PLAYS),
    ("mohan-9b", "Figure 9 (b)", "Goodput of video by length of segment", figure_9b, PLAYS),
    ("mohan-9c", "Figure 9 (c)", "Quality switches by length of segment", figure_9c, PLAYS),
    ("mohan-10", "Figure 10", "Throughput and delay by congestion control", figure_10, DOWNLOADS),
)
