"""Coloured bands along the time axis: serving cells, mobility state, what was played, runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.recorded import RadioSeries
from tandem_server.analysis.scores import spans
from tandem_server.report.words import cell, clock

HOLD_S = 3.0
"""A cell's band ends this long after the last poll that named it, when no other poll follows."""


@dataclass(frozen=True, slots=True)
class Band:
    """From ``start_s`` to ``end_s``; ``title`` is shown on pointing at it."""

    start_s: float
    end_s: float
    text: str
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A row of bands with a label."""

    label: str
    bands: list[Band]


def strips(e: Evaluation, css_of: dict[str, str]) -> list[Strip]:
    """All rows that the campaign can fill; ``css_of`` gives each operator's class."""
    out: list[Strip] = []
    truth = e.campaign.truth
    if truth is not None and truth.phases:
        bands = [
            Band(p.start_s, p.end_s, p.activity, f"activity {_activity_css(p.activity)}", f"{p.name}: {p.activity}")
            for p in truth.phases
        ]
        out.append(Strip("Played", bands))
    if truth is not None and truth.mobility:
        out.append(Strip("True state", _moving(truth.mobility, e, "played")))
    if e.recorded.radio:
        out.append(Strip("Found state", _moving(e.found_mobility, e, "said by the probe")))
    out += [
        Strip(f"Cell {series.operator}", _cells(series, css_of.get(series.operator, "op0")))
        for series in e.recorded.radio.values()
    ]
    ran = [r for r in e.runs if r.start_s is not None and r.end_s is not None]
    if ran:
        pairs: dict[str, list[tuple[float, float]]] = {}
        kinds: dict[str, str] = {}
        for r in ran:
            key = r.pair or r.id
            pairs.setdefault(key, []).append((r.start_s or 0.0, r.end_s or 0.0))
            kinds[key] = r.pairing
        out.append(
            Strip(
                "Runs",
                [
                    Band(a, b, str(n), "run", f"runs {n}: {kinds[key]}, {clock(a)}–{clock(b)}")
                    for n, (key, times) in enumerate(pairs.items(), 1)
                    for a, b in [(min(s for s, _ in times), max(t for _, t in times))]
                ],
            )
        )
    return out


def _activity_css(activity: str) -> str:
    return activity if activity in ("still", "walk", "tram", "drive") else "other"


def _moving(changes: list[tuple[float, bool]], e: Evaluation, by: str) -> list[Band]:
    return [
        Band(a, b, "moving" if state else "", "moving" if state else "standing", _moving_title(state, a, b, by))
        for a, b, state in spans(changes, 0.0, e.end_s)
    ]


def _moving_title(state: bool, start_s: float, end_s: float, by: str) -> str:
    return f"{'moving' if state else 'still'}, {by}, {clock(start_s)}–{clock(end_s)}"


def _cells(series: RadioSeries, css: str) -> list[Band]:
    named = [(float(t), eci) for t, eci in zip(series.t_s, series.eci, strict=True) if eci is not None]
    grouped = [(eci, [t for t, _ in polls]) for eci, polls in groupby(named, key=lambda pair: pair[1])]
    bands: list[Band] = []
    for n, (eci, times) in enumerate(grouped):
        following = grouped[n + 1][1][0] if n + 1 < len(grouped) else times[-1] + 1.0
        # Polling goes on before the axis begins: what lies there would take the band's words with it.
        start, end = max(times[0], 0.0), min(following, times[-1] + HOLD_S)
        title = f"eNodeB {eci >> 8}, sector {eci & 255}, {clock(start)}–{clock(end)}"
        if end > start:
            bands.append(Band(start, end, cell(eci), f"cell {css} shade{n % 2}", title))
    return bands
