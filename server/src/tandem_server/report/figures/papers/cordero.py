"""Cordero: Multi-Path TCP Performance Evaluation in Dual-Homed Devices, §4."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tandem_server.analysis.material import Material
from tandem_server.analysis.measured import BandwidthRound, DelayRound, shares_from
from tandem_server.analysis.tables.views import size_class
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import BANDWIDTH, DELAY, LackingError, figures
from tandem_server.report.figures.marks import Curve, Dots, Level, Line, Mark
from tandem_server.report.figures.sheet import Axis, Panel, Sheet

WORDS = {2: "two paths", 3: "three paths", 4: "four paths"}
RATIO = Axis("bandwidth ratio BWR (faster path over slower)", zero=True)
BENEFIT = Axis("bandwidth benefit", low=-1.05, high=1.15)
BYTES = Axis("size, bytes", log=True, bytes=True)
SHARE = Axis("share of experiments below", low=0, high=1.03)
LOADED = "share of the most loaded path"
PAPERS_RATIOS = (1, 2, 4, 10)
"""Of figure 9(b)."""


def _series(one: BandwidthRound, modes: int) -> str:
    name = grouping.controller(one.controller)
    return f"{name}, {one.mode}" if modes > 1 else name


def _rounds(m: Material) -> list[tuple[str, float, BandwidthRound]]:
    """With series and ratio: that which the paths were shaped to, else the measured one, rounded."""
    modes = len({r.mode for r in m.bandwidth})
    found = [
        (_series(r, modes), float(round(r.of.shaped_ratio() or r.ratio)), r) for r in m.bandwidth if r.ratio is not None
    ]
    if not found:
        raise LackingError("rounds of the experiment bandwidth in which every path alone was measured")
    return found


def _by_paths(draw: Callable[[Material], Sheet]) -> Callable[[Material], Sheet]:
    """Rounds of two paths, of three … by themselves: what a benefit or a share can be depends on how many there are."""

    def drawn(m: Material) -> Sheet:
        counts = sorted({r.of.compared for r in m.bandwidth} | {r.of.compared for r in m.delay})
        if counts == [2]:
            return draw(m)
        made: dict[int, Sheet] = {}
        lacking = ""
        for count in counts:
            own = [r for r in m.bandwidth if r.of.compared == count], [r for r in m.delay if r.of.compared == count]
            try:
                made[count] = draw(replace(m, bandwidth=own[0], delay=own[1]))
            except LackingError as error:
                lacking = lacking or str(error)
        if not made:
            raise LackingError(lacking or "rounds of two paths or more")
        panels = [
            replace(panel, title=": ".join(word for word in (WORDS.get(n, f"{n} paths"), panel.title) if word))
            for n, sheet in made.items()
            for panel in sheet.panels
        ]
        hues = {series: hue for sheet in made.values() for series, hue in sheet.hues.items()}
        notes = dict.fromkeys(sheet.note for sheet in made.values())
        return Sheet(panels, " ".join(notes), hues)

    return drawn


def _loaded(m: Material) -> Axis:
    """Of n paths one carries 1/n at least."""
    least = 1 / max((r.of.compared for r in m.delay), default=2)
    return Axis(LOADED, low=round(least, 2) - 0.05, high=1.04)


def figure_5(m: Material) -> Sheet:
    """Benefit by ratio."""
    marks = grouping.curves((s, x, r.benefit) for s, x, r in _rounds(m))
    if not marks:
        raise LackingError("rounds of the experiment bandwidth that gave a benefit")
    note = (
        "Eq. 2: 1 is all that the paths carry at once, 0 is TCP over the faster path, −1 is nothing. Medians over rounds by the ratio that "
        "the paths were shaped to, else as measured; bars: 95 % bootstrap intervals."
    )
    return Sheet([Panel("", [*marks, Level("", 0)], RATIO, BENEFIT)], note)


def figure_6(m: Material) -> Sheet:
    """Goodput over the slower path's against 1 + BWR. With more than two paths the bound is no function of the ratio: it is all paths'
    rates, over the slowest's."""
    more = any(r.of.compared > 2 for r in m.bandwidth)
    values = []
    for series, x, r in _rounds(m):
        slowest = min(r.alone_bit_per_s.values(), default=0.0)
        if r.goodput_bit_per_s is not None and slowest > 0:
            together = float(round(sum(r.alone_bit_per_s.values()) / slowest))
            values.append((series, together if more else x, r.goodput_bit_per_s / slowest))
    if not values:
        raise LackingError("rounds of the experiment bandwidth with MPTCP’s goodput")
    low, high = min(x for _, x, _ in values), max(x for _, x, _ in values)
    ends = [(x, x if more else 1 + x) for x in (low, high if high > low else low + 1)]
    bound, slower = ("ΣC", "slowest") if more else ("1 + BWR", "slower")
    across = Axis("ΣC over the slowest path’s goodput", zero=True) if more else RATIO
    note = (
        "Of more than two paths by the sum of all paths’ own goodputs ΣC over the slowest’s, to whole numbers: paths that share nothing "
        "carry so much at once."
        if more
        else "In units of the slower path’s own goodput: with paths that share nothing both at once carry 1 + BWR."
    )
    marks = [Line(bound, ends, bound=True), *grouping.curves(values)]
    panel = Panel("", marks, across, Axis(f"goodput, times the {slower} path’s", zero=True))
    return Sheet([panel], f"{note} Medians over rounds, 95 % bootstrap intervals.", {bound: "#1b1f24"})


def disjointivity(m: Material) -> Sheet:
    """TDI by ratio."""
    marks = grouping.boxes((f"TCP, {r.mode}", x, r.tdi) for _, x, r in _rounds(m))
    if not marks:
        raise LackingError("rounds of the experiment bandwidth with all paths at once")
    ends = [end for mark in marks for _, b in mark.points for end in (b.p10, b.p90)]
    note = (
        "Eq. 1: all paths at once over the sum of each alone; 1: they share nothing. A measured one may pass 1 a little. Boxes: quartiles, "
        "whiskers: deciles, black: 95 % bootstrap interval of the median."
    )
    y = Axis("transport disjointivity index", low=min(0.8, min(ends) - 0.05), high=max(1.15, max(ends) + 0.1))
    return Sheet([Panel("", [Level("", 1), *marks], RATIO, y)], note)


def _known(m: Material) -> list[tuple[DelayRound, float]]:
    found = [(r, r.benefit) for r in m.delay if r.benefit is not None]
    if not found:
        raise LackingError("rounds of the experiment delay that gave a benefit")
    return found


def figure_7(m: Material) -> Sheet:
    """What positive and negative benefits were made of."""
    known = _known(m)
    panels = []
    for title, axis, value in (
        ("(a) by size", BYTES, lambda r: float(r.bytes)),
        ("(b) by MPTCP delay", Axis("MPTCP delay, s", log=True), lambda r: r.delay_s),
    ):
        values = [("all", value(r)) for r, _ in known]
        values += [("positive benefit", value(r)) for r, b in known if b > 0]
        values += [("negative benefit", value(r)) for r, b in known if b < 0]
        lines = grouping.distributions(values, dashed=("all",))
        panels.append(Panel(title, lines, axis, SHARE))
    return Sheet(panels, "Delay benefit of Eq. 3, by the clock that the paper times with.", {"all": "#5c6570"})


def figure_8(m: Material) -> Sheet:
    """Delay benefit by size."""
    known = _known(m)
    dots = Dots("single experiments", grouping.thinned([(float(r.bytes), b) for r, b in known]), faint=True)
    boxes = grouping.boxes(("by the paper’s classes of size", _middle(r.bytes), b) for r, b in known)
    note = (
        "Eq. 3: 1 is the ideal delay 1/Σ(1/D) or better, 0 the faster path’s, −1 the slower path’s or worse. Classes from 1, 2 and 5 "
        "times a power of ten; boxes: quartiles, whiskers: deciles, black: 95 % bootstrap interval of the median."
    )
    y = Axis("delay benefit", low=-1.1, high=1.25)
    marks: list[Mark] = [dots, Level("", 0), *boxes]
    return Sheet(
        [Panel("", marks, BYTES, y)], note, {dots.series: "#5c6570", "by the paper’s classes of size": "#0072b2"}
    )


def _middle(size: int) -> float:
    """Of its class on a logarithmic axis."""
    least = size_class(size)
    factor = 2.5 if str(least)[0] == "2" else 2.0
    return least * math.sqrt(factor)


def figure_9a(m: Material) -> Sheet:
    """The most loaded path's share by size."""
    known = [(r.bytes, r.most_loaded_share) for r in m.delay if r.most_loaded_share is not None]
    if not known:
        raise LackingError("rounds of the experiment delay that tell what each path carried")
    dots = Dots("single experiments", grouping.thinned([(float(size), share) for size, share in known]), faint=True)
    middle: list[Curve] = grouping.curves(("median by class of size", _middle(size), share) for size, share in known)
    note = f"1: one path carried everything. All ratios together; medians with 95 % bootstrap intervals. {shares_from(m.delay)}"
    return Sheet([Panel("", [dots, *middle], BYTES, _loaded(m))], note, {dots.series: "#5c6570"})


def figure_9b(m: Material) -> Sheet:
    """The same by duration for some ratios, with BWR / (1 + BWR)."""
    by_ratio: dict[int, list[tuple[float, float]]] = {}
    for r in m.delay:
        ratio = r.of.shaped_ratio() if r.of.compared == 2 else None  # of more the ratio of two of them sets no limit
        if ratio is not None and r.delay_s is not None and r.delay_s > 0 and r.most_loaded_share is not None:
            by_ratio.setdefault(round(ratio), []).append((r.delay_s, r.most_loaded_share))
    wanted = [ratio for ratio in PAPERS_RATIOS if ratio in by_ratio]
    wanted += sorted(set(by_ratio) - set(wanted), key=lambda ratio: -len(by_ratio[ratio]))[: 4 - len(wanted)]
    if not wanted:
        raise LackingError("rounds of the experiment delay over two paths shaped to a ratio")
    ends = [t for ratio in wanted for t, _ in by_ratio[ratio]]
    panels = []
    across = Axis("MPTCP delay, s", log=True, low=min(ends) * 0.8, high=max(ends) * 1.25)
    for ratio in sorted(wanted):
        limit = max(ratio, 1) / (1 + ratio)  # §4.2.1; below 1 it is the same paths in the other order
        points = by_ratio[ratio]
        bound = Line("limit BWR/(1+BWR)", [(min(ends), limit), (max(ends), limit)], bound=True)
        dots = Dots("single experiments", grouping.thinned(points))
        title = f"BWR = {ratio}, n={len(points)}"
        panels.append(Panel(title, [bound, dots], across, _loaded(m)))
    hues = {"limit BWR/(1+BWR)": "#d55e00", "single experiments": "#0072b2"}
    return Sheet(panels, f"Ratio: of the rates that the paths were shaped to. {shares_from(m.delay)}", hues)


def figure_10(m: Material) -> Sheet:
    """Connecting."""
    values = [("MPTCP", r.connect_ms) for r in m.delay] + [("fastest TCP", r.fastest_connect_ms) for r in m.delay]
    panel = Panel("", grouping.distributions(values), Axis("connection establishment, ms", log=True), SHARE)
    note = "Time that connect takes at the client; TCP: the fastest of the round’s paths."
    return grouping.sheet([panel], "connection-establishment times of the experiment delay", note)


FIGURES = figures(
    "Cordero",
    ("cordero-5", "Figure 5", "Bandwidth aggregation benefit by bandwidth ratio", _by_paths(figure_5), BANDWIDTH),
    ("cordero-6", "Figure 6", "MPTCP goodput against the bound 1 + BWR", _by_paths(figure_6), BANDWIDTH),
    ("cordero-tdi", "Eq. 1", "Transport disjointivity index", _by_paths(disjointivity), BANDWIDTH),
    ("cordero-7", "Figure 7", "Positive and negative delay benefits by size and by delay", _by_paths(figure_7), DELAY),
    ("cordero-8", "Figure 8", "Delay benefit by size", _by_paths(figure_8), DELAY),
    ("cordero-9a", "Figure 9 (a)", "Share of the most loaded path by size", _by_paths(figure_9a), DELAY),
    ("cordero-9b", "Figure 9 (b)", "Share of the most loaded path by duration", _by_paths(figure_9b), DELAY),
    ("cordero-10", "Figure 10", "Connection-establishment time", _by_paths(figure_10), DELAY),
)
