"""Mohan et al., Is two greater than one? (2019), §3, §4.1, §4.2: Tables 1 and 2, network events, Figures 2 to 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Estimate
from tandem_server.analysis.events import (
    FACTOR,
    FIVE_MINUTES_S,
    FOLLOWS_S,
    HELD_S,
    LARGE_DB,
    LASTS_S,
    NO_LEVEL,
    SETTLED_S,
    SILENT_S,
    NetworkEvent,
    Recovery,
    count_in,
    following,
    overlap,
    per_five_minutes,
    up_to_and_over,
    windows,
)
from tandem_server.analysis.material import CONTROLLED, Material, Span
from tandem_server.analysis.measured import Download
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.series import around, means
from tandem_server.report import words
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import DOWNLOADS, EVENTS, RADIO, ROUND_TRIPS, SPANS, figures
from tandem_server.report.figures.marks import Bars, Dots, Line, Mark, Row, Shade
from tandem_server.report.figures.sheet import Axis, Panel, Sheet, operator_hues

WHO = "Mohan et al."
WORDS = {"static": "Stationary", "low": "Walking", "high": "Driving, tram", "moving": "Moving"}


DOWNLOAD_BYTES = 300_000_000
"""The paper's file. Where a run moved another amount, the time is that of these bytes at its goodput."""
PAPERS = (
    "The paper, MPTCP and TCP: stationary 69.2 and 42.1 Mbit/s, 56 and 57 ms, 36.6 and 71.4 s; walking 42.5 and 34.8 Mbit/s, 65 and "
    "68 ms, 61.2 and 78.1 s; driving 31.9 and 31.7 Mbit/s, 74 and 75 ms, 81.5 and 82.3 s."
)
"""Its Table 2."""
OTHERS = {"cellular", "path1"}
"""Chen's and Adarsh's: an operator beside Wi-Fi, or two networks of any kind."""


def in_the_wild(m: Material) -> list[Download]:
    """Downloads over links as they are, of a known mobility class, in which the kernel chose its subflows; not the other papers', whose
    paths have roles (``OTHERS``)."""
    return [
        d
        for d in m.downloads
        if not d.of.shape and d.subflows is None and d.of.mobility is not None and not OTHERS & set(d.of.roles)
    ]


def table_1(m: Material) -> Sheet:
    """How much was measured."""
    numbers: list[Row] = []
    for name, controlled in (("Uncontrolled", False), ("Controlled", True)):
        runs = [d for d in m.downloads if (d.of.step == CONTROLLED or d.of.label != "") is controlled]
        plays = [p for p in m.plays if (p.of.step == CONTROLLED or p.of.label != "") is controlled]
        kinds = [*(d.kind for d in runs), *(p.kind for p in plays)]
        numbers.append(
            {
                "runs": name,
                "mptcp_connections": kinds.count("mptcp"),
                "tcp_connections": kinds.count("tcp"),
                "downloads": len({d.pair or d.of.run for d in runs}),
                "plays": len(plays),
            }
        )
    keys = ("mptcp_connections", "tcp_connections", "downloads", "plays")
    texts = [[str(row["runs"]), *(words.count(int(str(row[key]))) for key in keys)] for row in numbers]
    heads = ["", "MPTCP connections", "TCP connections", "File downloads", "Video plays"]
    note = (
        "Measurements with a result. Controlled: labelled by hand, or of a step of that name. A file "
        "download may be several runs: one by each way."
    )
    return grouping.table(heads, texts, numbers, note)


def table_2(m: Material) -> Sheet:
    """Goodput, round-trip time and download time by mobility."""
    runs = in_the_wild(m)
    labelled = [d for d in runs if d.of.label]
    runs = labelled or [d for d in runs if d.pairing != "single"] or runs
    numbers: list[Row] = []
    texts = []
    for name in grouping.classes(d.of.mobility for d in runs):
        row: dict[str, float | int | str | None] = {"mobility": name}
        cells = [WORDS[name]]
        for key, unit, value in _QUANTITIES:
            for kind in ("mptcp", "tcp"):
                found = [v for d in runs if d.of.mobility == name and d.kind == kind and (v := value(d)) is not None]
                e = estimates.median(found)
                column = f"{kind}_{key}_{unit}"
                row |= {column: e and e.value, f"{column}_low": e and e.low, f"{column}_high": e and e.high}
                if key == "goodput":
                    row[f"{kind}_n"] = len(found)
                cells.append(grouping.written(e, 1 if key != "rtt" else 0, with_n=key == "goodput"))
        numbers.append(row)
        texts.append(cells)
    heads = ["", "Rate MPTCP, Mbit/s", "TCP", "RTT MPTCP, ms", "TCP", "300 MB MPTCP, s", "TCP"]
    note = (
        "Medians with 95 % bootstrap intervals (n runs); TCP over the runs of every operator. RTT at the "
        "sender. 300 MB: as measured, or, of "
        f"other amounts, at the run’s goodput. {'Labelled runs only.' if labelled else 'By what the probe was doing.'} {PAPERS}"
    )
    return grouping.table(heads, texts, numbers, note, "downloads at times of a known mobility class")


def _mbit(d: Download) -> float | None:
    return None if d.goodput_bit_per_s is None else d.goodput_bit_per_s / 1e6


def _took_s(d: Download) -> float | None:
    if d.asked_bytes == DOWNLOAD_BYTES and d.duration_s is not None:
        return d.duration_s
    return DOWNLOAD_BYTES * 8 / d.goodput_bit_per_s if d.goodput_bit_per_s else None


_QUANTITIES = (("goodput", "mbit_per_s", _mbit), ("rtt", "ms", lambda d: d.rtt()), ("download", "s", _took_s))


SPEED = {"static": "static", "low": "low speed", "high": "high speed", "moving": "moving"}
CLASS_HUES = {"static": "#009e73", "low speed": "#e69f00", "high speed": "#0072b2", "moving": "#cc79a7"}
KINDS = (f"drop up to {LARGE_DB:g} dB", f"drop over {LARGE_DB:g} dB", "handover")
BEFORE_S, AFTER_S = 10.0, 20.0
STEP_S = 0.5
"""Goodput is drawn as means of so long."""


def kind_of(event: NetworkEvent) -> str:
    """One of ``KINDS``."""
    if event.kind == "handover":
        return KINDS[2]
    return KINDS[0] if abs(event.change_db or 0.0) <= LARGE_DB else KINDS[1]


def figure_2(m: Material) -> Sheet:
    """How often which event came."""
    panels = []
    for operator in m.named():
        kits = [kit for kit in m.each if operator in _heard(kit)]
        if not kits:  # a Wi-Fi has no events to count
            continue
        marks: list[Mark] = []
        for name in grouping.classes(s.mobility for kit in kits for s in kit.spans):
            points: list[tuple[float, Estimate]] = []
            for place, kind in enumerate(KINDS):
                counts: list[int] = []
                lengths: list[float] = []
                for kit in kits:
                    times = sorted(e.t_s for e in kit.events if e.operator == operator and kind_of(e) == kind)
                    parts = [w for s in kit.spans if s.mobility == name for w in windows(s.start_s, s.end_s)]
                    counts += [count_in(times, a, b) for a, b in parts]
                    lengths += [b - a for a, b in parts]
                rate = estimates.rate(counts, lengths, FIVE_MINUTES_S)
                if rate is not None:
                    points.append((place, rate))
            marks.append(Bars(SPEED[name], points))
        panels.append(Panel(operator, marks, Axis("", names=KINDS), Axis("events in five minutes")))
    note = (
        "Events over time of each mobility class; n: windows of at most five minutes, which are drawn again "
        "for the 95 % bootstrap interval. "
        "Drops of 6 dB or more between two polls."
    )
    return Sheet(panels, note, CLASS_HUES)


def _heard(kit: Material) -> set[str]:
    """Operators whose radio was polled, or had an event."""
    return {*(s.operator for s in kit.radio.values()), *(e.operator for e in kit.events)}


def shares(m: Material) -> Sheet:
    """Handovers after drops, sizes of drops, overlap of both links."""
    places = (
        "handovers after a drop",
        f"drops up to {LARGE_DB:g} dB",
        f"drops over {LARGE_DB:g} dB",
        "events overlapping",
    )
    marks = []
    classes = [(kit, [kit.class_at(e.t_s) for e in kit.events]) for kit in m.each]
    for name in grouping.classes(s.mobility for s in m.spans):
        small = large = handovers = followed = together = events = 0
        for kit, of in classes:
            mine = [e for e, its in zip(kit.events, of, strict=True) if its == name]
            sizes = up_to_and_over([e.change_db or 0.0 for e in mine if e.kind == "drop"])
            small, large = small + sizes[0], large + sizes[1]
            for operator in kit.named():
                times = [e.t_s for e in mine if e.operator == operator and e.kind == "handover"]
                handovers += len(times)
                followed += following(times, [e.t_s for e in kit.events if e.operator == operator and e.kind == "drop"])
            counted, both = overlap(mine)
            together, events = together + both, events + counted
        counts = ((followed, handovers), (small, small + large), (large, small + large), (together, events))
        points = [(float(n), share) for n, pair in enumerate(counts) if (share := estimates.share(*pair)) is not None]
        if points:
            marks.append(Bars(SPEED[name], points))
    note = (
        f"After a drop: of the same operator, at most {FOLLOWS_S:g} s before. Overlapping: with an event of "
        "the other operator, each felt for "
        f"{LASTS_S:g} s. Intervals: 95 %, Wilson."
    )
    panel = Panel("", marks, Axis("", names=places), Axis("share", low=0, high=1.12))
    return grouping.sheet([panel], "events at times of a known mobility class", note, CLASS_HUES)


@dataclass(frozen=True, slots=True)
class _Case:
    """An event in an MPTCP run, with the subflow that had it."""

    kit: Material
    event: NetworkEvent
    run: str
    found: Recovery


def _cases(m: Material, kind: str) -> list[_Case]:
    return [case for kit in m.each for case in _of_kit(kit, kind)]


def _whose(m: Material, kit: Material) -> str:
    """Begins the heading of a panel that shows one kit of a pool."""
    return f"{kit.probe}: " if m.kits else ""


def _of_kit(m: Material, kind: str) -> list[_Case]:
    out = []
    for d in m.downloads:
        if d.kind != "mptcp" or d.of.start_s is None or d.of.end_s is None:
            continue
        for event in m.events:
            if event.kind != kind or not d.of.start_s <= event.t_s <= d.of.end_s - 1:
                continue
            for series in m.at_best(d.of.run):
                if series.operator != event.operator:
                    continue
                found = m.recovery(d.of.run, series, event)
                if found.why not in NO_LEVEL and math.isfinite(found.peak_ms):
                    out.append(_Case(m, event, d.of.run, found))
    return out


def figure_3(m: Material) -> Sheet:
    """One drop and one handover: what goodput and round-trip time did."""
    panels: list[Panel] = []
    shown: list[str] = []
    for letter, kind, word in (("a", "drop", "signal drop"), ("b", "handover", "handover")):
        cases = _cases(m, kind)
        if not cases:
            continue
        # The clearest: of those that recovered the one with the greatest peak over its level.
        case = max(cases, key=lambda c: (c.found.t_r_s > 0, c.found.peak_ms / c.found.level_ms))
        kit, of = case.kit, case.event.operator
        whose = _whose(m, kit)
        size = f" of {abs(case.event.change_db):.0f} dB" if case.event.change_db is not None else ""
        shade = [Shade(f"t_R = {case.found.t_r_s:.1f} s", 0.0, case.found.t_r_s)] if case.found.t_r_s > 0 else []
        across = Axis("time from the event, s")
        panels.append(
            Panel(
                f"{whose}({letter}) {word}{size} on {of}",
                [*shade, *_goodputs(case)],
                across,
                Axis("goodput, Mbit/s", zero=True),
            )
        )
        times: list[Mark] = [*shade, *_times(kit.at_best(case.run), case.event.t_s)]
        panels.append(Panel(f"{whose}({letter}) round-trip time", times, across, Axis("RTT, ms", zero=True)))
        shown.append(case.run)
    lacking = f"a signal drop or a handover {SETTLED_S:g} s or more after the beginning of an MPTCP download’s subflow"
    note = (
        f"One event each{' of one probe' if m.kits else ''}: the clearest of those in MPTCP downloads. Grey: t_R, until the RTT is "
        "back within "
        f"{FACTOR:g} times its level before for {HELD_S:g} s, and not silent for more than {SILENT_S:g} s "
        "(none where it never left it or was not back before the operator’s next event or the end). "
        "Events at the polls that showed them. TCP: runs "
        f"of the same pair at the same time. {m.source(shown)}"
    )
    return grouping.sheet(panels, lacking, note, operator_hues(m.named()))


def _goodputs(case: _Case) -> list[Line]:
    m = case.kit
    pair = next(d.pair for d in m.downloads if d.of.run == case.run)
    out = []
    for d in m.downloads:
        if d.pair == pair and d.of.run in m.connections:
            t, v = m.connections[d.of.run]
            points = means(around(t, v / 1e6, case.event.t_s, BEFORE_S, AFTER_S), STEP_S)
            name = "MPTCP" if d.kind == "mptcp" else f"TCP {d.of.operator(d.primary)}"
            if points:
                out.append(Line(name, points, n=len(points), dashed=d.kind == "tcp"))
    return out


def _times(series: Sequence[SubflowSeries], at_s: float) -> list[Line]:
    found = ((s.operator or "", around(s.t_s, s.rtt_ms, at_s, BEFORE_S, AFTER_S)) for s in series)
    return [Line(name, points, n=len(points)) for name, points in found if points]


def figure_4(m: Material) -> Sheet:
    """What the radio of each class looks like."""
    panels = []
    for name in grouping.classes(s.mobility for kit in m.each if kit.radio for s in kit.spans):
        kit, span = _busiest(m, name)
        mine = _within(kit, span)
        marks: list[Mark] = []
        for series in kit.radio.values():
            points = around(series.t_s, series.rsrp_dbm, span.start_s, 0.0, span.end_s - span.start_s)
            if len(points) < 2:  # a span may be over before the next poll
                continue
            levels = dict(points)
            at = [e.t_s - span.start_s for e in mine if e.operator == series.operator]
            marks.append(Line(series.operator, points, n=len(points)))
            if at:
                marks.append(Dots(series.operator, [(t, _nearest(levels, t)) for t in at]))
        rate = per_five_minutes(len(mine), span.end_s - span.start_s) or 0.0
        title = f"{_whose(m, kit)}{SPEED[name]}: {rate:.1f} events in 5 min"
        panels.append(Panel(title, marks, Axis("time, s"), Axis("RSRP, dBm")))
    one = " of one probe each," if m.kits else ""
    note = f"The span of each class with most events,{one} at most five minutes; dots: its events. {m.classes.accuracy_text()}"
    return grouping.sheet(panels, "two polls in a span of one mobility class", note, operator_hues(m.named()))


def _nearest(levels: Mapping[float, float], t: float) -> float:
    """The level at the poll nearest to a time."""
    return levels[min(levels, key=lambda at: abs(at - t))]


def _busiest(m: Material, name: str) -> tuple[Material, Span]:
    """Of kits that polled a modem."""
    parts: list[tuple[int, float, Material, Span]] = []
    for kit in m.each:
        times = sorted(e.t_s for e in kit.events)
        spans = [w for s in kit.spans if kit.radio and s.mobility == name for w in windows(s.start_s, s.end_s)]
        parts += [(count_in(times, a, b), b - a, kit, Span(a, b, name)) for a, b in spans]
    _, _, kit, span = max(parts, key=lambda part: part[:2])
    return kit, span


def _within(kit: Material, span: Span) -> list[NetworkEvent]:
    return [e for e in kit.events if span.start_s <= e.t_s < span.end_s]


FIGURES = figures(
    WHO,
    ("mohan-table-1", "Table 1", "What was measured", table_1, DOWNLOADS),
    ("mohan-table-2", "Table 2", "Goodput, round-trip time and download time by mobility", table_2, DOWNLOADS),
    ("mohan-2", "Figure 2", "Network events in five minutes", figure_2, EVENTS, SPANS),
    (
        "mohan-events",
        "§4.1",
        "Handovers after drops, sizes of drops, overlap of both links’ events",
        shares,
        EVENTS,
        SPANS,
    ),
    ("mohan-3", "Figure 3", "Effect of network events on goodput and round-trip time", figure_3, EVENTS, ROUND_TRIPS),
    ("mohan-4", "Figure 4", "Radio of each mobility class", figure_4, RADIO, SPANS),
)
