"""All result tables of a campaign folder, and each campaign in short: how far it came, what failed and why, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem_server.analysis.folder import CampaignFolder
from tandem_server.analysis.reading import json_object, mapping, text
from tandem_server.analysis.tables import view, views
from tandem_server.analysis.tables.facts import Facts, gather
from tandem_server.analysis.tables.view import Table, View, tabulate


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


VIEWS: dict[str, tuple[View, ...]] = {
    "download": (views.DOWNLOAD, views.GAIN),
    "bandwidth": (views.BANDWIDTH, views.ALONE),
    "delay": (views.DELAY,),
    "dash": (views.DASH,),
    "pageload": (views.PAGELOAD,),
    "reachability": (views.WAYS, views.OVERLAP, views.COMPARISON),
    "latency": (views.LATENCY,),
    "traceroute": (views.TRACES, views.DISJOINT),
    "verdict": (views.VERDICT,),
}
"""By experiment; one that is not here has the generic table."""


@dataclass(slots=True)
class Results:
    """``tables`` by experiment, in the order of ``VIEWS`` and then of the alphabet."""

    runs: list[Facts]
    campaigns: list[Overview]
    tables: dict[str, list[Table]] = field(default_factory=dict)

    def of(self, experiment: str) -> list[Facts]:
        """The experiment's runs."""
        return [run for run in self.runs if run.experiment == experiment]

    @property
    def flat(self) -> list[Table]:
        """All tables."""
        return [table for tables in self.tables.values() for table in tables]


def results(campaign: CampaignFolder) -> Results:
    """From the folder's manifests. Raises nothing, whatever they hold."""
    own = campaign.folder / "probe" / campaign.probe
    return of_manifests(campaign.manifests, own, planned(own))


def of_manifests(manifests: Sequence[Mapping[str, Any]], own: Path, planned: dict[str, dict[str, int]]) -> Results:
    """From manifests; files of the runs lie in ``own``. ``planned``: runs by campaign and step."""
    return of_facts(gather(manifests, own), planned)


def of_facts(runs: list[Facts], planned: dict[str, dict[str, int]]) -> Results:
    """From runs, of one kit or of several."""
    found = Results(runs, overviews(runs, planned))
    seen = {run.experiment for run in runs}
    for name in [*(n for n in VIEWS if n in seen), *sorted(seen - VIEWS.keys())]:
        mine = found.of(name)
        made = [t for view in VIEWS.get(name, ()) if (t := tabulate(view, mine)) is not None]
        if name not in VIEWS and (other := view.generic_table(name, mine)) is not None:
            made = [other]
        if made:
            found.tables[name] = made
    return found


def planned(own: Path) -> dict[str, dict[str, int]]:
    """Runs of each campaign's steps, from its ``begun.json`` in the probe's folder ``own``; what cannot be read is left out."""
    found: dict[str, dict[str, int]] = {}
    for path in sorted(own.glob("campaigns/*/begun.json")):
        try:
            begun = json_object(path)
        except (OSError, ValueError):
            continue
        steps = mapping(begun, "sequences")
        name = text(begun, "name") or path.parent.name
        found[name] = {step: len(rows) for step, rows in steps.items() if isinstance(rows, list)}
    return found
