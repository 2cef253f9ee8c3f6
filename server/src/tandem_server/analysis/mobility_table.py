"""Goodput, RTT and download time by mobility state, as in Table 2 of Mohan et al. (dual LTE, 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tandem_server.analysis.runs import Run

DOWNLOAD_BYTES = 300_000_000
"""The paper's file. Where a run moved another amount, the time is converted: these bytes at the mean goodput beside it."""

ORDER = ("still", "walk", "tram", "drive", "moving")

PAPER = (
    # state there, the activities here that it corresponds to, MPTCP and TCP: Mbit/s, ms, s
    ("Stationary", ("still",), (69.2, 42.1), (56.0, 57.0), (36.6, 71.4)),
    ("Walking", ("walk",), (42.5, 34.8), (65.0, 68.0), (61.2, 78.1)),
    ("Driving", ("drive",), (31.9, 31.7), (74.0, 75.0), (81.5, 82.3)),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """Means over ``runs`` runs; None without any. ``rtt_ms``: mean of the subflows' medians, weighted by bytes."""

    runs: int
    goodput_bit_per_s: float | None
    rtt_ms: float | None
    download_s: float | None
    converted: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One mobility state and pairing; ``tcp`` is over the runs of every operator."""

    activity: str
    pairing: str
    mptcp: Cell
    tcp: Cell


def table(runs: Sequence[Run]) -> list[Line]:
    """One line for each activity and pairing that has a run, in order of speed. Failed runs without a goodput are left out."""
    usable = [r for r in runs if r.goodput_bit_per_s is not None and r.activity is not None]
    keys = sorted({(r.activity or "", r.pairing) for r in usable}, key=lambda k: (_rank(k[0]), k[0], k[1]))
    lines = []
    for activity, pairing in keys:
        own = [r for r in usable if r.activity == activity and r.pairing == pairing]
        lines.append(Line(activity, pairing, *(_cell([r for r in own if r.kind == k]) for k in ("mptcp", "tcp"))))
    return lines


def _rank(activity: str) -> int:
    return ORDER.index(activity) if activity in ORDER else len(ORDER)


def _cell(runs: Sequence[Run]) -> Cell:
    if not runs:
        return Cell(0, None, None, None, False)
    rtts = [v for r in runs if (v := run_rtt_ms(r)) is not None]
    goodput = fmean(r.goodput_bit_per_s or 0.0 for r in runs)
    whole_file = all(r.bytes == DOWNLOAD_BYTES and r.duration_s is not None for r in runs)
    if whole_file:
        download: float | None = fmean(r.duration_s or 0.0 for r in runs)
    else:
        download = DOWNLOAD_BYTES * 8 / goodput if goodput else None
    return Cell(len(runs), goodput, fmean(rtts) if rtts else None, download, not whole_file)


def run_rtt_ms(run: Run) -> float | None:
    """One RTT for a run: its subflows' medians weighted by the bytes that each carried."""
    known = [(s.rtt_ms_median, max(s.bytes, 1)) for s in run.subflows if s.rtt_ms_median is not None]
    weight = sum(b for _, b in known)
    return sum(v * b for v, b in known) / weight if weight else None
