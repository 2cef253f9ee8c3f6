"""Arms of a campaign's step compared: what each did beside the reference, paired within blocks.

A block is a repetition of the step on one kit: it has every arm once, and they were made near each other. Effects are of pairs alone:
the ratio of geometric means, or the mean difference, with a bootstrap over the blocks (95 %, ``estimates.mean``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Estimate
from tandem_server.analysis.material import Bins
from tandem_server.analysis.reading import number
from tandem_server.analysis.tables.facts import Facts
from tandem_server.analysis.tables.view import Cell, Column, Table

REFERENCE = "off"
"""The arm that the others are compared with, where there is one; else the campaign's first."""
Block = tuple[str, int]
"""A kit of a pool ("" of one campaign), and the repetition."""
HELPS, HURTS, NOTHING, TOO_FEW = "helps", "hurts", "no difference shown", "too few blocks"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``ratio``: compared by the ratio of geometric means, else by the difference. ``more``: whether more of it is better."""

    key: str
    title: str
    unit: str
    ratio: bool
    more: bool


GOODPUT = Outcome("goodput_bit_per_s", "Goodput", "bit/s", ratio=True, more=True)
STALLED = Outcome("stalled_s", "Stall time", "s", ratio=False, more=False)
QUEUE = Outcome("reorder_queue_bytes", "Reorder queue (captures)", "B", ratio=False, more=False)
OUT_OF_ORDER = Outcome("rcv_ooo_packets", "Out-of-order packets (TCP)", "", ratio=False, more=False)


@dataclass(frozen=True, slots=True)
class Effect:
    """Of ``arm`` against the reference, in an outcome. ``estimate``: the ratio or the difference and its number of pairs; None without a
    pair. ``left_out``: blocks in which one of the two is not there."""

    outcome: Outcome
    arm: str
    estimate: Estimate | None
    left_out: int

    @property
    def verdict(self) -> str:
        """In words, by the interval."""
        if self.estimate is None or self.estimate.low is None or self.estimate.high is None:
            return TOO_FEW
        none = 1.0 if self.outcome.ratio else 0.0
        if self.estimate.low <= none <= self.estimate.high:
            return NOTHING
        return HELPS if (self.estimate.low > none) == self.outcome.more else HURTS


@dataclass(frozen=True, slots=True)
class Comparison:
    """A step whose arms differ in ``parameter`` alone; of a part it is ``STEP, PART``. By arm, the reference first: ``runs``, ``failed``;
    and ``values``, by outcome and block, of the runs that did not fail."""

    campaign: str
    step: str
    experiment: str
    parameter: str
    runs: Mapping[str, int]
    failed: Mapping[str, int]
    values: Mapping[str, Mapping[Outcome, Mapping[Block, float]]]
    blocks: int
    effects: Sequence[Effect]

    @property
    def reference(self) -> str:
        """The arm that the others are compared with."""
        return next(iter(self.runs))

    @property
    def outcomes(self) -> list[Outcome]:
        """Those of which there are values."""
        return list(dict.fromkeys(e.outcome for e in self.effects))

    @property
    def hurts(self) -> list[Effect]:
        """What an arm makes worse, by the interval."""
        return [e for e in self.effects if e.verdict == HURTS]


def compare(
    runs: Sequence[Facts], bins: Iterable[Bins] = (), out_of_order: Mapping[str, int] | None = None
) -> list[Comparison]:
    """Every step of every campaign with several arms of one parameter, in order of the runs; of parted ones each part's. ``bins``: of the
    captures, where they were analysed; ``out_of_order``: packets by run."""
    queues = {
        one.run: float(np.nanmean(one.reorder_queue_bytes))
        for one in bins
        if one.path is None and np.isfinite(one.reorder_queue_bytes).any()
    }
    steps: dict[tuple[str, ...], list[Facts]] = {}
    for run in runs:
        if run.campaign and run.varied and run.repetition is not None:
            steps.setdefault((run.campaign, run.step, *run.part.values()), []).append(run)
    found = []
    for (_, *place), mine in steps.items():
        keys = {key for run in mine for key in run.varied}
        arms = {value for run in mine for value in run.varied.values()}
        # Arms of one value differ in what is no part of it, as kind and path.
        if (
            len(keys) == 1
            and 1 < len(arms) == len({run.arm_number for run in mine})
            and all(run.varied for run in mine)
        ):
            found.append(_comparison(", ".join(place), mine, keys.pop(), queues, out_of_order or {}))
    return found


def effect(outcome: Outcome, arm: str, ours: Mapping[Any, float], theirs: Mapping[Any, float], blocks: int) -> Effect:
    """Of the values by block of an arm, and of the reference (``theirs``), of ``blocks`` in all. A ratio takes positive values."""
    both = [n for n in ours if n in theirs and (not outcome.ratio or min(ours[n], theirs[n]) > 0)]
    found = estimates.mean([math.log(ours[n] / theirs[n]) if outcome.ratio else ours[n] - theirs[n] for n in both])
    if found is not None and outcome.ratio:
        low, high = (None if end is None else math.exp(end) for end in (found.low, found.high))
        found = Estimate(math.exp(found.value), low, high, found.n)
    return Effect(outcome, arm, found, blocks - len(both))


def _comparison(
    step: str,
    mine: Sequence[Facts],
    parameter: str,
    queues: Mapping[str, float],
    out_of_order: Mapping[str, int],
) -> Comparison:
    # Of a pair, the run by Multipath TCP; of several attempts at one, the last.
    by_mptcp = [run for run in mine if run.kind == "mptcp"]
    runs: dict[str, dict[Block, Facts]] = {}
    for run in by_mptcp or mine:
        runs.setdefault(run.varied[parameter], {})[run.probe, run.repetition or 0] = run
    names = sorted(runs, key=lambda arm: (arm != REFERENCE, min(r.arm_number or 0 for r in runs[arm].values())))
    blocks = len({block for made in runs.values() for block in made})
    good = {arm: {n: r for n, r in runs[arm].items() if r.failure is None} for arm in names}
    # One kind of figure for all runs of a step: a queue in bytes and a count of packets are not one quantity.
    queue, by_run = (QUEUE, queues) if any(r.id in queues for m in good.values() for r in m.values()) else (
        OUT_OF_ORDER, {run: float(count) for run, count in out_of_order.items()}
    )  # fmt: skip
    values: dict[str, dict[Outcome, dict[Block, float]]] = {}
    for arm, made in good.items():
        told = {
            outcome: {n: v for n, r in made.items() if (v := number(r.result, outcome.key)) is not None}
            for outcome in (GOODPUT, STALLED)
        }
        values[arm] = {**told, queue: {n: by_run[r.id] for n, r in made.items() if r.id in by_run}}
    reference = names[0]
    effects = [
        effect(outcome, arm, values[arm][outcome], values[reference][outcome], blocks)
        for outcome in (GOODPUT, STALLED, queue)
        if any(values[arm][outcome] for arm in names)
        for arm in names[1:]
    ]
    return Comparison(
        mine[0].campaign,
        step,
        mine[0].experiment,
        parameter,
        {arm: len(runs[arm]) for arm in names},
        {arm: len(runs[arm]) - len(good[arm]) for arm in names},
        values,
        blocks,
        effects,
    )


_COLUMNS = (
    *(
        Column(key, title, "")
        for key, title in (("campaign", "Campaign"), ("step", "Step"), ("parameter", "Parameter"))
    ),
    *(Column(key, title, "") for key, title in (("outcome", "Outcome"), ("unit", "Unit"), ("arm", "Arm"))),
    *(Column(key, title, "1") for key, title in (("runs", "Runs"), ("failed", "Failed"), ("median", "Median"))),
    Column("reference", "Against", ""),
    *(Column(key, title, "1") for key, title in (("pairs", "Pairs"), ("left_out", "Blocks left out"))),
    Column("effect", "Effect", ""),
    *(Column(key, title, "1") for key, title in (("value", "Value"), ("low", "Low"), ("high", "High"))),
    Column("verdict", "Verdict", ""),
)
_OF_RUNS = ("campaign", "step", "parameter", "arm", "block", "outcome", "unit", "value")


def table(found: Sequence[Comparison]) -> Table:
    """All of them, a row an outcome and arm: for CSV and summary.json. The reference's rows have no effect."""
    rows: list[tuple[Cell, ...]] = []
    values: list[tuple[Cell, ...]] = []
    for one in found:
        effects = {(e.outcome, e.arm): e for e in one.effects}
        for outcome in one.outcomes:
            for arm, runs in one.runs.items():
                own = one.values[arm][outcome]
                middle = float(np.median(list(own.values()))) if own else None
                head = (one.campaign, one.step, one.parameter, outcome.key, outcome.unit, arm, runs, one.failed[arm])
                rows.append((*head, middle, *_effect_cells(one, effects.get((outcome, arm)))))
                first = (one.campaign, one.step, one.parameter, arm)
                values += [
                    (*first, f"{kit}/{block}" if kit else block, outcome.key, outcome.unit, v)
                    for (kit, block), v in sorted(own.items())
                ]
    return Table("arms", "Arms compared", "", _COLUMNS, rows, _OF_RUNS, values)


def _effect_cells(one: Comparison, e: Effect | None) -> tuple[Cell, ...]:
    if e is None:
        return (None,) * 8
    value, low, high, n = e.estimate or (None, None, None, 0)
    return one.reference, n, e.left_out, "ratio" if e.outcome.ratio else "difference", value, low, high, e.verdict
