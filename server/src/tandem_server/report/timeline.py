"""The commute as one picture, what stands behind it, and each pair of runs as bars: sheets of an evaluated campaign."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.recorded import RadioSeries
from tandem_server.analysis.runs import Run
from tandem_server.analysis.scores import spans
from tandem_server.analysis.series import SPAN_S, curve, summed
from tandem_server.analysis.truth import Link
from tandem_server.report.figures.marks import Area, Array, Bands, Bar, Dots, Mark, Moments, Span, Stacks, Trace
from tandem_server.report.figures.sheet import (
    BAD,
    GREY,
    INK,
    OPERATORS,
    SOFT,
    Axis,
    Panel,
    Sheet,
    operator_hues,
    round_top,
)
from tandem_server.report.words import ABSENT, cell, clock, mega, percent

HOLD_S = 3.0
"""A cell's band ends this long after the last poll that named it, when no other poll follows."""
POLLED_S = 2.5
"""Polls come about once a second: a line through them is broken where one is further from the next."""
_ACTIVITY = {"still": 0.12, "walk": 0.45, "tram": 0.75}
_EFFECTS = (("RTT at the sender", "ms", "server"), ("Goodput of the operator", "Mbit/s", "probe"))
_KINDS = (("handover", "handovers"), ("signal_drop", "signal drops"))
OFFERED = "capacity offered"


class Colours:
    """Names of the legend and their colours: an operator's is the same wherever it appears."""

    def __init__(self, operators: Sequence[str]) -> None:
        self.operators = list(operators)
        self.of = operator_hues(self.operators)
        self.named = {OFFERED: GREY}

    def name(self, text: str, operator: str | None) -> str:
        """``text``, which has the operator's colour from now on."""
        self.named[text] = self.of.get(operator or "", OPERATORS[0])
        return text


def commute(e: Evaluation, colours: Colours) -> Sheet:
    """Cells, states and runs as bands; the radio of all operators with its events; what was offered and got. Over one time."""
    panels = [_bands(e, colours), _radio(e, colours, rsrp=True)]
    if e.runs or e.campaign.truth is not None:
        links = [link for o in colours.operators if (link := _link(e, o))]
        marks = [*_offered(_sum_of(links)), *_stack(e, colours, [r for r in e.runs if r.kind == "mptcp"], None)]
        y = Axis("Mbit/s", low=0, high=_top(e, _sum_of(links)))
        panels.append(Panel("Goodput by MPTCP, all operators together", marks, _time(e), y, height=190))
    return _live(panels, colours)


def detail(e: Evaluation, colours: Colours) -> Sheet:
    """Signal to noise, each operator's goodput, and round-trip times, which handovers and drops may have moved."""
    panels = [_radio(e, colours, rsrp=False)]
    for operator in colours.operators if e.runs else ():
        link = _link(e, operator)
        offered = None if link is None else (link.t_s, link.down_bit_per_s / 1e6)
        marks = [*_offered(offered), *_stack(e, colours, e.runs, operator)]
        y = Axis("Mbit/s", low=0, high=_top(e, offered, operator))
        panels.append(Panel(f"Goodput on {operator}", marks, _time(e), y))
    panels.append(
        Panel("Round-trip time at the sender", list(_round_trips(e, colours)), _time(e), Axis("ms", log=True))
    )
    return _live(panels, colours)


def _live(panels: Iterable[Panel], colours: Colours) -> Sheet:
    """Of panels that show something beside events."""
    kept = [p for p in panels if any(not isinstance(mark, Moments | Dots) for mark in p.marks)]
    return Sheet(kept, hues=colours.named, live=True)


def _time(e: Evaluation) -> Axis:
    return Axis("time since the start, s", low=0, high=e.end_s)


# --- bands


def _bands(e: Evaluation, colours: Colours) -> Panel:
    """All rows that the campaign can fill."""
    truth = e.campaign.truth
    rows: list[tuple[str, list[Span]]] = []
    if truth is not None and truth.phases:
        played = [(p, _ACTIVITY.get(p.activity, 1.0)) for p in truth.phases]
        found = [Span(p.start_s, p.end_s, p.activity, GREY, a, f"{p.name}: {p.activity}") for p, a in played]
        rows.append(("Played", found))
    if truth is not None and truth.mobility:
        rows.append(("True state", _moving(truth.mobility, e, "played")))
    if e.recorded.radio:
        rows.append(("Found state", _moving(e.found_mobility, e, "said by the probe")))
    for series in e.recorded.radio.values():
        hue = colours.of.get(series.operator, OPERATORS[0])
        rows.append((f"Cell {series.operator}"[:14], cells(series, hue)))
    if e.runs:
        rows.append(("Runs", _of_runs(e.runs)))
    marks = [Bands(row, found) for row, (_, found) in enumerate(rows)]
    y = Axis("", names=tuple(name for name, _ in rows), flipped=True)
    return Panel("", marks, _time(e), y, height=22 * len(rows))


def _moving(changes: list[tuple[float, bool]], e: Evaluation, by: str) -> list[Span]:
    return [
        Span(a, b, "moving", INK, 1.0, f"moving, {by}, {clock(a)}–{clock(b)}")
        for a, b, moving in spans(changes, 0.0, e.end_s)
        if moving
    ]


def cells(series: RadioSeries, hue: str) -> list[Span]:
    """Serving cells along time, in two shades."""
    times, named = series.cells()
    begins = np.flatnonzero(np.diff(named, prepend=-1))
    firsts, lasts = times[begins].tolist(), times[np.append(begins[1:], len(times))[: len(begins)] - 1].tolist()
    found = []
    for n, (eci, first, last) in enumerate(zip(named[begins].tolist(), firsts, lasts, strict=True)):
        following = firsts[n + 1] if n + 1 < len(firsts) else last + 1.0
        # Polling goes on before the axis begins: what lies there would take the band's words with it.
        start, end = max(first, 0.0), min(following, last + HOLD_S)
        title = f"eNodeB {eci >> 8}, sector {eci & 255}, {clock(start)}–{clock(end)}"
        if end > start:
            found.append(Span(start, end, cell(eci), hue, 0.16 if n % 2 else 0.34, title))
    return found


def _of_runs(runs: Sequence[Run]) -> list[Span]:
    found: list[Span] = []
    for n, pair in enumerate(pairs_of(runs).values(), 1):
        times = [(r.start_s, r.end_s) for r in pair if r.start_s is not None and r.end_s is not None]
        if times:
            a, b = min(start for start, _ in times), max(end for _, end in times)
            word = "" if found and a < found[-1].end else str(n)  # one would lie on the other
            found.append(Span(a, b, word, INK, 0.14, f"runs {n}: {pair[0].pairing}, {clock(a)}–{clock(b)}"))
    return found


def pairs_of(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that belong together, in order of time; they are numbered from 1."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.pair or run.id, []).append(run)
    return groups


# --- lines and areas


def _radio(e: Evaluation, colours: Colours, *, rsrp: bool) -> Panel:
    """Every path's, with its events: handovers as lines over the height, drops as dots."""
    marks: list[Mark] = []
    drops: list[Mark] = []
    for series in e.recorded.radio.values():
        operator, level = series.operator, series.rsrp_dbm if rsrp else series.sinr_db
        if not np.isfinite(level).any():
            continue
        handovers = [ev.t_s for ev in e.events("handover") if ev.operator == operator]
        fell = [ev.t_s for ev in e.events("signal_drop") if ev.operator == operator]
        if handovers:
            marks.append(Moments(colours.name(f"handover {operator}", operator), handovers))
        marks.append(Trace(colours.name(f"operator {operator}", operator), series.t_s, level, POLLED_S))
        if fell and rsrp:
            nearest = np.clip(np.searchsorted(series.t_s, np.array(fell) - 0.01), 0, len(series.t_s) - 1)
            points = [(t, float(v)) for t, v in zip(fell, level[nearest], strict=True) if np.isfinite(v)]
            drops.append(Dots(colours.name(f"signal drop {operator}", operator), points))
    title, y = ("Received power", Axis("RSRP, dBm")) if rsrp else ("Signal to noise", Axis("SINR, dB"))
    return Panel(title, [*marks, *drops], _time(e), y, height=180 if rsrp else 120)


def _offered(of: tuple[Array, Array] | None) -> list[Mark]:
    return [] if of is None else [Area(OFFERED, of[0], np.zeros(len(of[0])), of[1])]


def _stack(e: Evaluation, colours: Colours, runs: Sequence[Run], operator: str | None) -> list[Mark]:
    """Runs that overlap lie on top of each other: each starts where the sum of those before it ends, at every moment."""
    below: list[tuple[Array, Array]] = []
    marks: list[Mark] = []
    flows = e.recorded.flows()
    for run in sorted(runs, key=lambda r: (r.kind == "tcp", r.start_s or 0.0)):
        for flow in flows.get((run.id, "probe"), ()):
            if (operator is not None and flow.operator != operator) or len(flow.t_s) < 2:
                continue
            rate = np.nan_to_num(flow.goodput_bit_per_s) / 1e6  # an absent value as nothing got
            base = np.zeros(len(flow.t_s))
            for t, other in below:
                base += np.interp(flow.t_s, t, other, left=0.0, right=0.0)
            name = colours.name(f"{run.kind.upper()} on {flow.operator}", flow.operator)
            marks.append(Area(name, flow.t_s, base, base + rate, faint=run.kind == "tcp"))
            below.append((flow.t_s, rate))
    return marks


def _round_trips(e: Evaluation, colours: Colours) -> Iterable[Mark]:
    """As the sender's kernel saw them, of MPTCP's subflows and of TCP."""
    kinds = {r.id: r.kind for r in e.runs}
    for operator in colours.operators:
        if times := [ev.t_s for ev in e.events("handover") if ev.operator == operator]:
            yield Moments(colours.name(f"handover {operator}", operator), times)
    for kind in ("tcp", "mptcp"):
        for operator in colours.operators:
            own = [s for s in e.recorded.subflows if s.end == "server" and s.operator == operator]
            own = [s for s in own if kinds.get(s.run) == kind and np.isfinite(s.rtt_ms).any()]
            if own:
                own.sort(key=lambda s: float(s.t_s[0]))
                # A NaN between them, so that no line joins two runs.
                t = np.concatenate([part for s in own for part in (s.t_s, s.t_s[-1:])])
                v = np.concatenate([part for s in own for part in (s.rtt_ms, [np.nan])])
                name = colours.name(f"{kind.upper()} on {operator}", operator)
                yield Trace(name, t, v, 1.0, faint=kind == "tcp")


def _link(e: Evaluation, operator: str) -> Link | None:
    return None if e.campaign.truth is None else e.campaign.truth.links.get(operator)


def _sum_of(links: Sequence[Link]) -> tuple[Array, Array] | None:
    return summed([(link.t_s, link.down_bit_per_s / 1e6) for link in links]) if links else None


def _top(e: Evaluation, offered: tuple[Array, Array] | None, operator: str | None = None) -> float:
    """The axis' end: what was offered, and nearly all that was got. A hole that is filled hands over in one sample what waited behind
    it, several times the link's rate; an axis up to there would hide everything else, so such samples are cut off."""
    tops = [float(np.max(offered[1]))] if offered is not None and len(offered[1]) else []
    sums: dict[str, float] = {}
    for s in e.recorded.subflows:
        if s.end == "probe" and operator in (None, s.operator) and np.isfinite(s.goodput_bit_per_s).any():
            most = float(np.nanquantile(s.goodput_bit_per_s, 0.95)) / 1e6
            key = s.run if operator is None else f"{s.run} {s.subflow}"
            sums[key] = sums.get(key, 0.0) + most
    return round_top([*tops, *sums.values()])


# --- around events


def times_of(e: Evaluation, kind: str) -> list[tuple[float, str]]:
    """(time, operator) of each event; on a bench the true ones, which are known better than a poll a second can tell."""
    truth = e.campaign.truth
    if truth is not None:
        true = truth.handovers if kind == "handover" else truth.drops
        return [(x.t_s, x.operator) for x in true]
    return [(x.t_s, x.operator or "") for x in e.events(kind)]


def around(e: Evaluation) -> Sheet | None:
    """Median curves, for each kind of event and quantity, of the subflow (of MPTCP runs) on the operator that had the event; None: no
    event happened during a run."""
    mptcp = {r.id for r in e.runs if r.kind == "mptcp"}
    panels = []
    for kind, words in _KINDS:
        events = times_of(e, kind)
        for title, unit, end in _EFFECTS:
            # Events and series of one operator belong together.
            by_operator = []
            for operator in sorted({o for _, o in events}):
                own = [s for s in e.recorded.subflows if s.end == end and s.operator == operator and s.run in mptcp]
                series = [(s.t_s, s.rtt_ms if end == "server" else s.goodput_bit_per_s / 1e6) for s in own]
                by_operator.append(([t for t, o in events if o == operator], series))
            found = curve(by_operator)
            if found.n == 0:
                continue
            marks: list[Mark] = []
            band = np.isfinite(found.low) & np.isfinite(found.high)
            edges = np.flatnonzero(np.diff(np.concatenate(([0], band.astype(np.int8), [0]))))
            for a, b in zip(edges[::2], edges[1::2], strict=True):  # stretches without a gap
                half = "middle half of the events"
                marks.append(Area(half, found.offset_s[a:b], found.low[a:b], found.high[a:b], faint=True))
            marks += [Moments("the event", [0.0]), Trace("median", found.offset_s, found.median)]
            top = float(np.nanmax(np.fmax(found.high, found.median)))
            x = Axis(f"seconds from the event; {found.n} of {len(events)}", low=-SPAN_S, high=SPAN_S)
            panels.append(Panel(f"{title} around {words}", marks, x, Axis(unit, low=0, high=top * 1.1 or 1.0)))
    hues = {"the event": BAD, "median": INK, "middle half of the events": SOFT}
    return Sheet(panels, hues=hues) if panels else None


# --- each pair of runs as bars: what was got, by operator, over what was offered


PAIRINGS = {"sequential": "one after the other", "simultaneous": "at the same time", "single": "alone"}
MOST_PAIRS = 60
"""Pairs on the page; all runs are in the tables."""
_ROW = 23


def bars(runs: Sequence[Run], colours: Colours) -> Sheet:
    """In order of time, in two columns; one scale for all, so that pairs can be compared by eye."""
    pairs = [_pair(n, own, colours) for n, own in enumerate(pairs_of(runs).values(), 1)][:MOST_PAIRS]
    rates = [v / 1e6 for r in runs for v in (r.goodput_bit_per_s, r.capacity_bit_per_s) if v is not None]
    x, half = Axis("Mbit/s", low=0, high=round_top(rates)), -(-len(pairs) // 2)
    columns = [[bar for pair in part for bar in pair] for part in (pairs[:half], pairs[half:]) if part]
    high = _ROW * max(map(len, columns), default=0)
    # The shorter column is filled with empty rows: a bar is as high in both.
    filled = [[*column, *[Bar()] * (high // _ROW - len(column))] for column in columns]
    return Sheet([Panel("", [Stacks(column)], x, Axis("", names=("",)), height=high) for column in filled])


def _pair(number: int, runs: list[Run], colours: Colours) -> list[Bar]:
    what = ", ".join(dict.fromkeys(r.activity for r in runs if r.activity is not None)) or "activity not known"
    at = min((r.start_s for r in runs if r.start_s is not None), default=None)
    head = (
        f"{number}: {ABSENT if at is None else clock(at)} · {what} · {PAIRINGS.get(runs[0].pairing, runs[0].pairing)}"
    )
    ordered = sorted(runs, key=lambda r: (r.kind != "mptcp", r.path or ""))
    said = _verdict(ordered)
    return [
        Bar(head=head),
        *(_bar(run, colours) for run in ordered),
        *([Bar(head=f"{said}.", soft=True)] if said else []),
    ]


def _bar(run: Run, colours: Colours) -> Bar:
    goodput = (run.goodput_bit_per_s or 0.0) / 1e6
    known = [s for s in run.subflows if s.share is not None]
    part = 0.5 if run.kind == "tcp" else 1.0
    parts = [(colours.of.get(s.operator or "", OPERATORS[0]), part, goodput * (s.share or 0.0)) for s in known]
    alone = run.pairing != "simultaneous" and run.capacity_bit_per_s is not None
    said = [mega(run.goodput_bit_per_s)]
    if run.failure:
        said.append(f"failed: {run.failure}"[:36])
    elif run.fallback and run.kind == "mptcp":
        said.append("fell back to TCP")
    if alone and run.ratio is not None and not run.failure:
        said.append(f"{percent(run.ratio)} of {mega(run.capacity_bit_per_s)}")
    of: dict[str, float] = {}
    for s in known:  # an operator may have several subflows
        of[s.operator or ""] = of.get(s.operator or "", 0.0) + (s.share or 0.0)
    shares = " · ".join(f"{name} {percent(share)}" for name, share in of.items()) if run.kind == "mptcp" else ""
    return Bar(
        label="MPTCP" if run.kind == "mptcp" else f"TCP {known[0].operator if known else run.path or ''}"[:14],
        parts=parts or ([(OPERATORS[0], part, goodput)] if goodput else []),
        offered=(run.capacity_bit_per_s or 0.0) / 1e6 if alone else None,
        text="\n".join(line for line in (" · ".join(said), shares[:34]) if line),
    )


def _verdict(runs: list[Run]) -> str:
    mptcp = next((r for r in runs if r.kind == "mptcp" and r.goodput_bit_per_s is not None), None)
    said: list[str] = []
    if mptcp is not None and mptcp.sum_of_singles_bit_per_s and mptcp.goodput_bit_per_s is not None:
        said.append(f"MPTCP got {mptcp.goodput_bit_per_s / mptcp.sum_of_singles_bit_per_s:.2f} × the single TCPs’ sum")
    together = next((r.pair_ratio for r in runs if r.pair_ratio is not None), None)
    if together is not None:
        said.append(f"all together used {percent(together)} of the capacity that they shared")
    return "; ".join(said)
