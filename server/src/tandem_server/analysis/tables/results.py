"""All result tables of a campaign folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem_server.analysis.folder import CampaignFolder
from tandem_server.analysis.reading import json_object, mapping, text
from tandem_server.analysis.tables import generic, pages, probing, throughput, video
from tandem_server.analysis.tables.facts import Facts, gather
from tandem_server.analysis.tables.overview import Overview, overviews
from tandem_server.analysis.tables.view import Table, View, tabulate

VIEWS: dict[str, tuple[View, ...]] = {
    "download": (throughput.DOWNLOAD, throughput.GAIN),
    "bandwidth": (throughput.BANDWIDTH, throughput.ALONE),
    "delay": (throughput.DELAY,),
    "dash": (video.DASH,),
    "pageload": (pages.PAGELOAD,),
    "reachability": (probing.WAYS, probing.OVERLAP, probing.COMPARISON),
    "latency": (probing.LATENCY,),
    "traceroute": (probing.TRACES, probing.DISJOINT),
    "verdict": (probing.VERDICT,),
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
        if name not in VIEWS and (other := generic.table(name, mine)) is not None:
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
