"""Each pair of runs as bars: what was got, by operator, over what was offered."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.runs import Run
from tandem_server.report.figures.hues import OPERATORS
from tandem_server.report.figures.marks import Bar, Stacks
from tandem_server.report.figures.scale import Axis, round_top
from tandem_server.report.figures.sheet import Panel, Sheet
from tandem_server.report.timeline import Colours, pairs_of
from tandem_server.report.words import ABSENT, clock, mega, percent

PAIRINGS = {"sequential": "one after the other", "simultaneous": "at the same time", "single": "alone"}
MOST = 60
"""Pairs on the page; all runs are in the tables."""
_ROW = 23


def bars(runs: Sequence[Run], colours: Colours) -> Sheet:
    """In order of time, in two columns; one scale for all, so that pairs can be compared by eye."""
    pairs = [_pair(n, own, colours) for n, own in enumerate(pairs_of(runs).values(), 1)][:MOST]
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
