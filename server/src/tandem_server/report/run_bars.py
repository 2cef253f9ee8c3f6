"""Each pair of runs as bars: what was got, by operator, over what was offered."""

from __future__ import annotations

from dataclasses import dataclass

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.runs import Run
from tandem_server.report.words import ABSENT, clock, mega, percent


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar, ``percent`` of the scale wide."""

    css: str
    percent: float
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One run. ``offered_percent`` is None in the field and for runs that shared the links."""

    label: str
    parts: list[Part]
    offered_percent: float | None
    value: str
    note: str
    shares: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Runs that belong together; ``verdict`` is a line about all of them."""

    number: int
    title: str
    start_s: float | None
    end_s: float | None
    bars: list[Bar]
    verdict: str


PAIRINGS = {"sequential": "one after the other", "simultaneous": "at the same time", "single": "alone"}


def pairs(e: Evaluation, css_of: dict[str, str]) -> list[Pair]:
    """In order of time; one scale for all, so that pairs can be compared by eye."""
    groups: dict[str, list[Run]] = {}
    for run in e.runs:
        groups.setdefault(run.pair or run.id, []).append(run)
    scale = max([1.0] + [v for r in e.runs for v in (r.goodput_bit_per_s, r.capacity_bit_per_s) if v is not None])
    return [_pair(n, runs, css_of, scale) for n, runs in enumerate(groups.values(), 1)]


def _pair(number: int, runs: list[Run], css_of: dict[str, str], scale: float) -> Pair:
    first = runs[0]
    starts = [r.start_s for r in runs if r.start_s is not None]
    ends = [r.end_s for r in runs if r.end_s is not None]
    what = ", ".join(dict.fromkeys(r.activity for r in runs if r.activity is not None)) or "activity not known"
    at = clock(min(starts)) if starts else ABSENT
    ordered = sorted(runs, key=lambda r: (r.kind != "mptcp", r.path or ""))
    return Pair(
        number,
        f"{at} · {what} · {PAIRINGS.get(first.pairing, first.pairing)}",
        min(starts, default=None),
        max(ends, default=None),
        [_bar(r, css_of, scale) for r in ordered],
        _verdict(ordered),
    )


def _bar(run: Run, css_of: dict[str, str], scale: float) -> Bar:
    goodput = run.goodput_bit_per_s or 0.0
    parts = [
        Part(
            css_of.get(s.operator or "", "op0") + (" tcp" if run.kind == "tcp" else ""),
            goodput * s.share / scale * 100,
            f"{s.operator}: {percent(s.share)}, {mega(goodput * s.share)} Mbit/s",
        )
        for s in run.subflows
        if s.share is not None
    ]
    if not parts and goodput:
        parts = [Part("op0", goodput / scale * 100, f"{mega(goodput)} Mbit/s")]
    alone = run.pairing != "simultaneous" and run.capacity_bit_per_s is not None
    note = f"{percent(run.ratio)} of {mega(run.capacity_bit_per_s)}" if alone and run.ratio is not None else ""
    if run.failure:
        note = f"failed: {run.failure}"
    elif run.fallback and run.kind == "mptcp":
        note = f"fell back to TCP; {note}" if note else "fell back to TCP"
    names = [s for s in run.subflows if s.share is not None]
    label = "MPTCP" if run.kind == "mptcp" else f"TCP {names[0].operator if names else run.path or ''}"
    return Bar(
        label,
        parts,
        (run.capacity_bit_per_s or 0.0) / scale * 100 if alone else None,
        mega(run.goodput_bit_per_s),
        note,
        " · ".join(f"{s.operator} {percent(s.share)}" for s in names) if run.kind == "mptcp" else "",
    )


def _verdict(runs: list[Run]) -> str:
    mptcp = next((r for r in runs if r.kind == "mptcp" and r.goodput_bit_per_s is not None), None)
    said: list[str] = []
    if mptcp is not None and mptcp.sum_of_singles_bit_per_s and mptcp.goodput_bit_per_s is not None:
        said.append(f"MPTCP got {mptcp.goodput_bit_per_s / mptcp.sum_of_singles_bit_per_s:.2f} × the single TCPs’ sum")
    together = next((r.pair_ratio for r in runs if r.pair_ratio is not None), None)
    if together is not None:
        said.append(f"all runs together used {percent(together)} of the capacity that they shared")
    return "; ".join(said)
