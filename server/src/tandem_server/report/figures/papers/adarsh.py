"""Adarsh, Schmitt, Belding: MPTCP Performance over Heterogeneous Subpaths: §III the survey, §IV controlled, §V in the field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tandem_server.analysis.estimates import share
from tandem_server.analysis.material import Material
from tandem_server.analysis.measured import Download, Load, Setting, shares_from
from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.tables.facts import Facts
from tandem_server.analysis.tables.views import distributions
from tandem_server.report import words
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import DOWNLOADS, LOADS, SURVEYS, figures
from tandem_server.report.figures.marks import Line, Row, numbers_of
from tandem_server.report.figures.sheet import Axis, Panel, Sheet, binary_size

LETTERS = {"wifi": "W", "cellular": "L"}
PARTS = (
    ("rtt", "(a) RTT of path 2 increases", "RTT difference, ms"),
    ("loss", "(b) loss on path 2 increases", "loss on path 2, %"),
)
TOP_SHARE = Axis("share of bytes over path 2", low=0, high=1.03)
_PROBE = ["Probe"]
"""Of a pool's surveys, which stand in lines of their own."""
MOST_SIZES = 3
"""Panels of goodput; the paper shows three of its five sizes."""


def _surveys(m: Material) -> list[tuple[Material, Facts, dict[str, str]]]:
    """With the kit whose paths they name, and, of a pool, its name."""
    return [(kit, run, {"probe": kit.probe} if m.kits else {}) for kit in m.each for run in kit.surveys]


def _way(told: str, kit: Material, *, pooled: bool) -> str:
    """WW, WL, LW, LL where the roles say which path is which, else the paths' names, in a pool the operators': pinging first, resolving
    second."""
    letters = {path: LETTERS[role] for role, path in kit.roles.items() if role in LETTERS}
    parts = told.split("/")
    if all(p in letters for p in parts):
        return "".join(letters[p] for p in parts)
    return "/".join(kit.operators.get(p, p) for p in parts) if pooled else told


def figure_2(m: Material) -> Sheet:
    """RTT by way."""
    rows = [
        (_way(text(row, "way") or "", kit, pooled=bool(whose)), row)
        for kit, run, whose in _surveys(m)
        for row in run.listed("ways")
    ]
    counts: Counter[str] = Counter()
    for name, row in rows:
        counts[name] += whole(mapping(row, "name_rtt_ms"), "n") or whole(row, "names") or 0
    found = distributions((name, mapping(row, "name_rtt_ms")) for name, row in rows)
    lines = [Line(name, points, n=counts[name]) for name, points in found.items() if points]
    note = (
        "By pinging and resolving path: W Wi-Fi, L cellular. Each name’s mean over its addresses’ pings; "
        "through the quantiles that the survey "
        "tells (1 to 99 %), the median over surveys; n: names that answered."
    )
    axes = Axis("round-trip time, ms", zero=True), Axis("share of names below", low=0, high=1.03)
    return grouping.sheet([Panel("", lines, *axes)], "round-trip times of the survey", note)


def table_1(m: Material) -> Sheet:
    """Who never answered."""
    numbers: list[Row] = []
    texts = []
    for kit, run, whose in _surveys(m):
        for row in run.listed("ways"):
            ping, _, asked = (text(row, "way") or "").partition("/")
            part, n = number(row, "unresponsive_share"), whole(row, "addresses")
            if part is None or not n or (e := share(round(part * n), n)) is None:
                continue
            numbers.append({**whose, "pinging": ping, "resolving": asked, **numbers_of(e)})
            span = grouping.written(e, 2, words.percent)
            texts.append([kit.place(ping), kit.place(asked), span, words.count(n), *whose.values()])
    heads = ["Ping interface", "Resolution interface", "Unresponsive (95 %, Wilson)", "n addresses"]
    heads += _PROBE if m.kits else []
    note = "Never any answer to any ping."
    return grouping.table(heads, texts, numbers, note, "unresponsive addresses of the survey")


def overlap(m: Material) -> Sheet:
    """Addresses in common."""
    numbers: list[Row] = []
    texts = []
    for kit, run, whose in _surveys(m):
        for row in run.listed("overlap"):
            both, either = whole(row, "addresses_both"), whole(row, "addresses_either")
            paths = (
                [p for p in row.get("paths", []) if isinstance(p, str)] if isinstance(row.get("paths"), list) else []
            )
            if both is None or not either or not 0 <= both <= either:
                continue
            same = number(row, "names_same_share")
            numbers.append(
                {**whose, "paths": "/".join(paths), "both": both, "y": both / either, "names_same": same, "n": either}
            )
            names = " and ".join(kit.place(p) for p in paths)
            texts.append(
                [names, words.percent(both / either, 2), words.count(either), words.percent(same, 1), *whose.values()]
            )
    heads = ["Resolved over", "Addresses in common", "n addresses of either", "Names with the same"]
    heads += _PROBE if m.kits else []
    note = "Of the addresses that either path’s resolver gave, those that both did."
    return grouping.table(heads, texts, numbers, note, "overlap of addresses in the survey")


def _abscissa(of: Setting, part: str) -> float | None:
    """Where a run stands in the series ``part``; None: it is of the other one."""
    rtt, loss = of.rtt_gap_ms(), of.loss_gap_percent()
    if rtt is None or loss is None:
        return None
    if part == "rtt":
        return rtt if loss == 0 and "loss" not in of.step else None
    return loss if rtt == 0 and of.step not in ("rtt", "pages") else None


def _primary(of: Setting, primary: str) -> str:
    places = of.in_order()
    return "path 2 primary" if places is not None and primary == places[1] else "path 1 primary"


def _second(of: Setting, shares: Mapping[str, float]) -> float | None:
    places = of.in_order()
    whole_share = sum(shares.values())
    return shares.get(places[1], 0.0) / whole_share if places is not None and whole_share > 0 else None


def _mine(of: Setting, field: bool) -> bool:
    """Runs of a campaign in the field belong to §V, others over shaped paths to §IV."""
    known = bool(of.shape) or of.campaign.startswith("adarsh")
    return known and ("field" in of.campaign) is field and "cellular" not in of.roles


def byte_shares(field: bool, *, pages: bool = False) -> Callable[[Material], Sheet]:
    """Figures 4 and 8: shares of downloads; 7 and 11: of pages."""
    what = "loads of pages" if pages else "downloads"

    def draw(m: Material) -> Sheet:
        every: Sequence[Download | Load] = m.loads if pages else m.downloads
        mine = [one for one in every if one.kind == "mptcp" and _mine(one.of, field)]
        panels = []
        for part, title, axis in PARTS:
            triples = [
                (_primary(one.of, one.primary), x, _second(one.of, one.shares))
                for one in mine
                if (x := _abscissa(one.of, part)) is not None
            ]
            panels.append(Panel(title, grouping.curves(triples), Axis(axis, zero=True), TOP_SHARE))
        lacking = f"{what} by MPTCP over two paths of which one is made slower or lossier"
        note = f"Medians over {what} with 95 % bootstrap intervals; path 1 carries the rest. {shares_from(mine)}"
        return grouping.sheet(panels, lacking, note)

    return draw


def goodput(field: bool) -> Callable[[Material], Sheet]:
    """Figures 5 and 9: goodput by size, against TCP over each path."""

    def draw(m: Material) -> Sheet:
        mine = [d for d in m.downloads if _mine(d.of, field) and d.asked_bytes is not None]
        sizes = sorted({d.asked_bytes or 0 for d in mine})
        chosen = sizes if len(sizes) <= MOST_SIZES else [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
        panels = []
        for part, title, axis in PARTS:
            for size in chosen:
                triples = [
                    (_arm(d), x, d.goodput_bit_per_s / 1e6)
                    for d in mine
                    if d.asked_bytes == size
                    and d.goodput_bit_per_s is not None
                    and (x := _abscissa(d.of, part)) is not None
                ]
                curves = grouping.curves(sorted(triples, key=lambda t: _ARMS.index(t[0])), dashed=_ARMS[2:])
                axes = Axis(axis, zero=True), Axis("goodput, Mbit/s", zero=True)
                panels.append(Panel(f"{title[:3]} {binary_size(size)}", curves, *axes))
        lacking = "downloads of a size over two paths of which one is made slower or lossier"
        left = f" {len(sizes) - len(chosen)} more sizes were measured." if len(chosen) < len(sizes) else ""
        note = f"Medians over runs with 95 % bootstrap intervals. Higher is better.{left}"
        return grouping.sheet(panels, lacking, note)

    return draw


_ARMS = ("MPTCP, path 1 primary", "MPTCP, path 2 primary", "TCP, path 1", "TCP, path 2")


def _arm(d: Download) -> str:
    second = _primary(d.of, d.primary).startswith("path 2")
    return _ARMS[(0 if d.kind == "mptcp" else 2) + second]


def page_loads(field: bool) -> Callable[[Material], Sheet]:
    """Figures 6 and 10: distribution of page load times."""

    def draw(m: Material) -> Sheet:
        mine = [p for p in m.loads if p.kind == "mptcp" and _mine(p.of, field)]
        panels = []
        for part, title, _ in PARTS:
            found: dict[tuple[float, str], list[Load]] = {}
            for p in mine:
                if (x := _abscissa(p.of, part)) is not None and _primary(p.of, p.primary) == "path 1 primary":
                    found.setdefault((x, p.page), []).append(p)
            values = sorted((x, sum(p.time_ms for p in pages) / len(pages) / 1e3) for (x, _), pages in found.items())
            unit = "ms more" if part == "rtt" else "% lost"
            places = sorted({x for x, _ in values})
            kept = places if len(places) <= 4 else [places[n * (len(places) - 1) // 3] for n in range(4)]
            lines = grouping.distributions((f"{x:g} {unit}", v) for x, v in values if x in kept)
            axes = Axis("page load time, s", log=True), Axis("share of pages below", low=0, high=1.03)
            panels.append(Panel(title, lines, *axes))
        lacking = "loads of pages by MPTCP over two paths of which one is made slower or lossier"
        by = sorted({p.by for p in mine})
        note = (
            f"Each page’s mean over its loads, path 1 primary; n: pages. Loaded by: {', '.join(by)}. Lower is better."
        )
        return grouping.sheet(panels, lacking, note)

    return draw


FIGURES = figures(
    "Adarsh et al.",
    ("adarsh-2", "Figure 2", "RTT by pinging and resolving path", figure_2, SURVEYS),
    ("adarsh-table-1", "Table I", "Unresponsive servers", table_1, SURVEYS),
    ("adarsh-overlap", "§III.B", "Overlap of addresses", overlap, SURVEYS),
    ("adarsh-4", "Figure 4", "Traffic by path, downloads, controlled", byte_shares(field=False), DOWNLOADS),
    ("adarsh-5", "Figure 5", "Goodput, controlled", goodput(field=False), DOWNLOADS),
    ("adarsh-6", "Figure 6", "Page load time, controlled", page_loads(field=False), LOADS),
    ("adarsh-7", "Figure 7", "Web traffic by path, controlled", byte_shares(field=False, pages=True), LOADS),
    ("adarsh-8", "Figure 8", "Traffic by path, downloads, in the field", byte_shares(field=True), DOWNLOADS),
    ("adarsh-9", "Figure 9", "Goodput, in the field", goodput(field=True), DOWNLOADS),
    ("adarsh-10", "Figure 10", "Page load time, in the field", page_loads(field=True), LOADS),
    ("adarsh-11", "Figure 11", "Web traffic by path, in the field", byte_shares(field=True, pages=True), LOADS),
)
