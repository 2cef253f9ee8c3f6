"""Chen et al. §5: round-trip times of the subflows and out-of-order delays of packets, by the captures at the receiver."""

from __future__ import annotations

from collections.abc import Iterable

from tandem_server.analysis import estimates
from tandem_server.analysis.delays import Histogram, pooled
from tandem_server.analysis.material import Bins, Material
from tandem_server.analysis.measured import Download
from tandem_server.report import words
from tandem_server.report.figures.figure import DOWNLOADS, Figure, LackingError, Need
from tandem_server.report.figures.marks import Cells, Line, Row
from tandem_server.report.figures.papers.chen import WHO, mean_text
from tandem_server.report.figures.sheet import Axis, Panel, Sheet, binary_size, operator_hues

DELAYS = Need(
    "round-trip times or waits of packets in captures (tandem-server analyse)",
    lambda m: [one for one in m.bins if one.rtts is not None or one.waits is not None],
)
MOST_SIZES = 4
"""Panels of a pair of operators; the paper has four sizes."""
TAIL = Axis("share that took longer", log=True, high=1)


def _captured(m: Material) -> list[tuple[Download, Bins]]:
    """Of the downloads by Multipath TCP, in order of the pairs and sizes."""
    runs = {d.of.run: d for d in m.downloads if d.kind == "mptcp" and len(set(d.of.paths)) > 1}
    found = [(runs[one.run], one) for one in m.bins if one.run in runs]
    return sorted(found, key=lambda pair: (_pair(pair[0]), pair[0].asked_bytes or 0))


def _pair(d: Download) -> str:
    """The operators of its paths, and the server's scheduler where that is told."""
    pair = " + ".join(sorted(d.of.operator(path) for path in set(d.of.paths)))
    return f"{pair}, {d.of.scheduler}" if d.of.scheduler else pair


def _size(d: Download) -> str:
    return "timed" if d.asked_bytes is None else binary_size(d.asked_bytes)


def _tails(found: Iterable[tuple[str, Histogram]]) -> list[Line]:
    """A line a series, of all its histograms together."""
    by_series: dict[str, list[Histogram]] = {}
    for series, one in found:
        by_series.setdefault(series, []).append(one)
    lines = []
    for series, every in by_series.items():
        whole = pooled(every)
        # Neither "in order" nor "nobody" has a place on axes of logarithms.
        points = [(ms, share) for ms, share in whole.above() if ms > 0 and share > 0]
        lines.append(Line(series, points, n=whole.n, step=True))
    return [line for line in lines if line.points]


def round_trips(m: Material) -> Sheet:
    """How often a subflow's round trip took longer."""
    known = [(d, one.path, one.rtts) for d, one in _captured(m) if one.path and one.rtts is not None]
    sizes: dict[str, list[str]] = {}
    for d, _, _ in known:
        mine = sizes.setdefault(_pair(d), [])
        mine += [_size(d)] if _size(d) not in mine else []
    panels = [
        Panel(
            f"{pair}, {size}",
            _tails((d.of.operator(path), rtts) for d, path, rtts in known if (_pair(d), _size(d)) == (pair, size)),
            Axis("round-trip time, ms", log=True),
            TAIL,
        )
        for pair, mine in sizes.items()
        for size in mine[-MOST_SIZES:]
    ]
    panels = [panel for panel in panels if panel.marks]
    if not panels:
        raise LackingError("round-trip times in captures of downloads by MPTCP over paths with one capture each")
    left = sum(max(0, len(mine) - MOST_SIZES) for mine in sizes.values())
    note = (
        "By the captures at the probe, from its packet to the answer’s timestamp echo, as the sender has it; to the millisecond begun; "
        f"n: samples, all downloads of a size together.{f' Smaller sizes left out: {left}.' if left else ''}"
    )
    return Sheet(panels, note, operator_hues(m.named()))


def waits(m: Material) -> Sheet:
    """How often a packet waited longer for those before it."""
    known = [(d, one.waits) for d, one in _captured(m) if one.path is None and one.waits is not None]
    pairs = list(dict.fromkeys(_pair(d) for d, _ in known))
    x = Axis("out-of-order delay, ms", log=True)
    panels = [Panel(pair, _tails((_size(d), one) for d, one in known if _pair(d) == pair), x, TAIL) for pair in pairs]
    panels = [panel for panel in panels if panel.marks]
    if not panels:
        raise LackingError("packets that waited, in captures of every path of downloads by MPTCP")
    return Sheet(panels, f"{WAITED} n: packets, all downloads of a size together. {untold(one for _, one in known)}")


WAITED = (
    "From a packet’s coming to the coming of all data before its last byte, on any subflow; to the millisecond begun. "
    "Of what came twice the first copy."
)


def untold(found: Iterable[Histogram]) -> str:
    """Of packets whose wait has no end in the capture."""
    whole = pooled(found)
    return f"Packets that waited longer than was captured: {words.count(int(whole.longer))}; they count as longer than all."


def table(m: Material) -> Sheet:
    """Means and standard errors, a subflow or connection one value."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for d, one in _captured(m):
        if one.path and one.rtts is not None and (mean := one.rtts.mean_ms()) is not None:
            values.setdefault((_pair(d), _size(d), f"RTT, {d.of.operator(one.path)}, ms"), []).append(mean)
        if one.path is None and one.waits is not None and (mean := one.waits.mean_ms()) is not None:
            values.setdefault((_pair(d), _size(d), "out-of-order delay, ms"), []).append(mean)
            late = one.waits.n - float(one.waits.counts[one.waits.ms == 0].sum())
            values.setdefault((_pair(d), _size(d), "out of order, %"), []).append(100 * late / one.waits.n)
    numbers: list[Row] = []
    texts = []
    for (pair, size, quantity), mine in values.items():
        e, both = estimates.median(mine), estimates.spread(mine)
        if e is None or both is None:
            continue
        row: Row = {"pair": pair, "size": size, "quantity": quantity, "mean": both[0], "se": both[1]}
        numbers.append({**row, "y": e.value, "low": e.low, "high": e.high, "n": e.n})
        span = "" if e.low is None else f" ({words.fixed(e.low, 1)}–{words.fixed(e.high, 1)})"
        texts.append([pair, size, quantity, mean_text(both, 1), f"{words.fixed(e.value, 1)}{span}", str(e.n)])
    if not numbers:
        raise LackingError("delays of packets in captures of downloads by MPTCP over paths with one capture each")
    heads = ["Paths", "Size", "", "mean", "median", "n"]
    note = (
        "Means ± standard errors over downloads (of each one value: its path’s subflows, or its connection), as in the paper; "
        "medians with 95 % bootstrap intervals. Out-of-order delay: over all packets whose wait is known, those in order with 0."
    )
    return Sheet([Panel("", [Cells(heads, texts, numbers)])], note)


_BOTH = (DOWNLOADS, DELAYS)
FIGURES = (
    Figure("chen-rtt", WHO, "§5", "Tail of the subflows’ round-trip times", _BOTH, round_trips),
    Figure("chen-out-of-order", WHO, "§5", "Tail of the packets’ out-of-order delays", _BOTH, waits),
    Figure("chen-table-delays", WHO, "§5, table", "Round-trip times and out-of-order delays", _BOTH, table),
)
