"""Each campaign in short: how far it came, what failed and why, what stood in for what, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem_server.analysis.tables.facts import Facts


@dataclass(slots=True)
class StepCount:
    """Runs of one step; ``failed`` by reason."""

    step: str
    experiment: str
    ok: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    numbers: set[tuple[str, int]] = field(default_factory=set)
    """Of the step's sequence, by kit of a pool: a paired measurement is several runs of one number."""


@dataclass(slots=True)
class Overview:
    """``name`` "" for the runs that were of no campaign. ``substitutes``: one line each, what stood in for what the campaign asked.
    ``bytes``: both ways over all paths, as the interfaces counted. ``planned``: of the steps, as far as ``begun.json`` tells."""

    name: str
    form: str
    steps: list[StepCount]
    substitutes: list[str]
    planned: dict[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """All of them."""
        return self.ok + self.failed

    @property
    def ok(self) -> int:
        """Without a failure."""
        return sum(step.ok for step in self.steps)

    @property
    def failed(self) -> int:
        """With one."""
        return sum(sum(step.failed.values()) for step in self.steps)

    @property
    def bytes(self) -> int:
        """Of all steps."""
        return sum(step.bytes for step in self.steps)


def overviews(runs: Sequence[Facts], planned: dict[str, dict[str, int]]) -> list[Overview]:
    """In the order of each campaign's first run. ``planned``: runs by campaign and step."""
    found: dict[str, Overview] = {}
    for run in runs:
        one = found.setdefault(run.campaign, Overview(run.campaign, run.form, [], [], planned.get(run.campaign, {})))
        step = next((s for s in one.steps if (s.step, s.experiment) == (run.step, run.experiment)), None)
        if step is None:
            step = StepCount(run.step, run.experiment)
            one.steps.append(step)
        if run.failure is None:
            step.ok += 1
        else:
            step.failed[run.failure[:160]] += 1
        step.bytes += run.usage or 0
        if run.number is not None:
            step.numbers.add((run.probe, run.number))
        for what, told in run.substituted.items():
            line = f"{what}: asked {told.get('asked')}, used {told.get('used')}"[:200] if isinstance(told, dict) else ""
            if line and line not in one.substitutes:
                one.substitutes.append(line)
    return list(found.values())
