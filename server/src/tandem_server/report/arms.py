"""The section "Arms compared": verdicts in plain words, a table and a forest plot for each comparison of ``analysis.arms``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tandem_server.analysis.arms import TOO_FEW, Comparison, Effect, Outcome
from tandem_server.analysis.estimates import Estimate
from tandem_server.report import words
from tandem_server.report.figures.figure import contents
from tandem_server.report.figures.marks import Forest
from tandem_server.report.figures.sheet import Axis, Panel, Picture, Sheet, as_csv, picture
from tandem_server.report.result_tables import Shown, ShownTable, safe

PREFIX = "arms-"
"""Of the figures' files."""
_SHOWN = {"bit/s": ("Mbit/s", 1e6), "B": ("kB", 1e3)}
_HEADS = (
    *(
        ("Outcome", "", True),
        ("Arm", "", True),
        ("Median", "", False),
        ("Against the reference, 95 % interval", "", True),
    ),
    *(("Verdict", "", True), ("Pairs", "", False), ("Left out", "", False), ("Runs", "", False), ("Failed", "", False)),
)
_LONGEST = 30
"""Letters of an arm's name that fit into a panel."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison for the page. ``hurts``: a sentence each. ``svg``, ``csv``: "" without an effect, ``pdf`` empty."""

    title: str
    hurts: Sequence[str]
    table: ShownTable
    name: str
    svg: str
    pdf: bytes
    csv: str


def compared(found: Sequence[Comparison]) -> list[Compared]:
    """All of them, in their order."""
    return [_compared(one) for one in found]


def files(found: Sequence[Compared]) -> dict[str, bytes]:
    """The figures' files by name."""
    return {name: file for c in found for name, file in contents(c.name, c.svg, c.pdf, c.csv).items()}


def sentence(one: Comparison, effect: Effect) -> str:
    """An effect as one says it."""
    what = f"{one.parameter} {effect.arm} {effect.verdict}" if effect.verdict != TOO_FEW else f"{effect.arm}: {TOO_FEW}"
    n = 0 if effect.estimate is None else effect.estimate.n
    return f"{one.campaign}, {one.step}: {what}: {effect.outcome.title.lower()} {_size(effect)} against {one.reference} ({n} pairs)"


def _compared(one: Comparison) -> Compared:
    effects = {(e.outcome, e.arm): e for e in one.effects}
    rows = []
    for outcome in one.outcomes:
        unit, factor = _SHOWN.get(outcome.unit, (outcome.unit, 1.0))
        for arm, runs in one.runs.items():
            values = list(one.values[arm][outcome].values())
            middle = words.fixed(float(np.median(values)) / factor, 2) if values else words.ABSENT
            told = effects.get((outcome, arm))
            pairs = ("reference", "", "", "") if told is None else _cells(told)
            head = ", ".join(filter(None, (outcome.title, unit)))
            rows.append((head, arm, middle, *pairs, str(runs), str(one.failed[arm])))
    title = f"{one.campaign}, {one.step}: {one.parameter} ({one.experiment}, {one.blocks} blocks)"
    sheet = _sheet(one)
    drawn, csv = Picture("", b""), ""
    if sheet is not None:
        drawn, csv = picture(sheet, f"Arms compared: {title}"), as_csv(sheet)
    shown = [[Shown(text) for text in row] for row in rows]
    table = ShownTable(title, "", list(_HEADS), shown, 0)
    name = f"{PREFIX}{safe(one.campaign)}-{safe(one.step)}"
    return Compared(title, [sentence(one, e) for e in one.hurts], table, name, *drawn, csv)


def _cells(effect: Effect) -> tuple[str, str, str, str]:
    n = 0 if effect.estimate is None else effect.estimate.n
    return _size(effect), effect.verdict, str(n), str(effect.left_out)


def _size(effect: Effect) -> str:
    """With its interval: a ratio, or a difference with its unit."""
    e = effect.estimate
    if e is None:
        return words.ABSENT
    unit, factor = _SHOWN.get(effect.outcome.unit, (effect.outcome.unit, 1.0))
    before, after, factor = ("×", "", 1.0) if effect.outcome.ratio else ("", f" {unit}".rstrip(), factor)

    def told(value: float) -> str:
        return before + ("+" if value > 0 and not before else "") + words.fixed(value / factor, 2)

    ends = "" if e.low is None or e.high is None else f" ({told(e.low)} to {told(e.high)})"
    return f"{told(e.value)}{after}{ends}"


def _sheet(one: Comparison) -> Sheet | None:
    """A panel an outcome."""
    panels = []
    for outcome in one.outcomes:
        mine = [(e.arm, e.estimate) for e in one.effects if e.outcome == outcome]
        points = [(_cut(arm), _scaled(estimate, outcome)) for arm, estimate in mine if estimate is not None]
        if points:
            unit = _SHOWN.get(outcome.unit, (outcome.unit, 1.0))[0]
            far = f"ratio to {one.reference}" if outcome.ratio else f"difference from {one.reference}"
            axis = Axis(", ".join(part for part in (far, "" if outcome.ratio else unit) if part), log=outcome.ratio)
            panels.append(
                Panel(_short(outcome), [Forest(points, 1.0 if outcome.ratio else 0.0)], axis, Axis("", names=("",)))
            )
    return Sheet(panels) if panels else None


def _cut(arm: str) -> str:
    return arm if len(arm) <= _LONGEST else arm[: _LONGEST - 1] + "…"


def _short(outcome: Outcome) -> str:
    name = outcome.title.partition(" (")[0]  # a third of the page's width holds no more; the table has the whole
    return f"{name} ({'more' if outcome.more else 'less'}: better)"


def _scaled(e: Estimate, outcome: Outcome) -> Estimate:
    factor = 1.0 if outcome.ratio else _SHOWN.get(outcome.unit, ("", 1.0))[1]
    low, high = (None if end is None else end / factor for end in (e.low, e.high))
    return Estimate(e.value / factor, low, high, e.n)
