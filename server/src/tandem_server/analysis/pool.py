"""Several kits as one campaign (Mohan pooled three volunteers over five months). Each kit is evaluated by itself, on its own time axis and
with its own paths; what is pooled are its measurements. Nothing is joined across kits by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tandem_server.analysis import folder as campaign_folder
from tandem_server.analysis.captures import Packets
from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.folder import CampaignFolder, FolderError
from tandem_server.analysis.material import Bins, Material, classes_of, material, pooled, times_of
from tandem_server.analysis.mobility_classes import Fit, RunClasses, fitted
from tandem_server.analysis.radio_packets import Joined
from tandem_server.analysis.reading import mapping, mappings, text, whole
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.runs import run_paths
from tandem_server.analysis.tables.facts import gather
from tandem_server.analysis.tables.results import Results, of_facts, planned

COLUMNS = {"probe": "probe", "operator": "operators", "city": "city"}
BY = tuple(COLUMNS)
UNKNOWN = "unknown"


@dataclass(slots=True)
class Kit:
    """One probe of the campaign, evaluated, and what was analysed of its captures; ``cut``: those of which a part could not be read."""

    evaluation: Evaluation
    packets: Packets | None = None
    cut: list[str] = field(default_factory=list)

    @property
    def bins(self) -> list[Bins]:
        """Of its captures."""
        return list(self.packets.bins) if self.packets is not None else []

    @property
    def campaign(self) -> CampaignFolder:
        """Its folder."""
        return self.evaluation.campaign

    @property
    def probe(self) -> str:
        """Its name, which no other kit of the pool has."""
        return self.evaluation.campaign.probe

    @property
    def operators(self) -> list[str]:
        """Of its paths as far as they are known, once each, in order of the alphabet."""
        return sorted({name for name in self.campaign.operators.values() if not name.startswith(f"{self.probe}/")})

    @property
    def cities(self) -> list[str]:
        """Where it measured: as campaign.json tells, else the runs' manifests; none where neither does."""
        told = text(mapping(mapping(self.campaign.campaign, "probes"), self.probe), "city")
        ran = (text(mapping(manifest, "environment"), "city") for manifest in self.campaign.manifests)
        return [told] if told is not None else sorted({city for city in ran if city is not None})

    def part(self, by: str) -> str:
        """In which part it is: every kit is in one."""
        names = {"probe": [self.probe], "operator": self.operators, "city": self.cities}[by]
        return " + ".join(names) or UNKNOWN


@dataclass(slots=True)
class Pool:
    """``kits`` in order of their names; of one kit ``results`` and ``classes`` are its own. ``by``: what parts it; None: nothing.
    ``marks``: what a reader of the figures must know, a line each. ``missing``: what did not arrive, of all kits."""

    kits: list[Kit]
    by: str | None
    results: Results
    classes: RunClasses
    material: Material
    parts: dict[str, Material]
    marks: list[str]
    missing: list[str]

    @property
    def several(self) -> bool:
        """Whether it is of more than one kit."""
        return len(self.kits) > 1

    @property
    def shown(self) -> Evaluation:
        """The kit whose time lines a page shows: that which was polled longest, the first of equal ones."""

        def polled_s(kit: Kit) -> float:
            return sum(float(s.t_s[-1] - s.t_s[0]) for s in kit.evaluation.recorded.radio.values())

        return max(self.kits, key=lambda kit: (polled_s(kit), len(kit.campaign.manifests))).evaluation

    @property
    def bins(self) -> list[Bins]:
        """Of all kits."""
        return [one for kit in self.kits for one in kit.bins]

    @property
    def out_of_order(self) -> dict[str, int]:
        """Packets by run, of all kits."""
        return {run: n for kit in self.kits for run, n in kit.evaluation.recorded.out_of_order.items()}

    @property
    def joined(self) -> Joined | None:
        """Radio events joined to captures in each kit, one table; None where no captures were analysed."""
        found = [kit.packets.joined for kit in self.kits if kit.packets is not None]
        if len(found) < 2:
            return found[0] if found else None
        account: Counter[str] = Counter()
        for one in found:
            account.update(one.account)
        return Joined([row for one in found for row in one.rows], dict(account))

    def results_of(self, part: str) -> Results:
        """Of one part's kits."""
        return _results([kit for kit in self.kits if self.by is not None and kit.part(self.by) == part], None)


def load(folders: Sequence[Path], probe: str | None = None) -> list[CampaignFolder]:
    """The kits of these folders: of an export all, of another folder its first; of one folder that which ``probe`` names. FolderError."""
    found: list[CampaignFolder] = []
    for folder in folders:
        first = campaign_folder.load(folder, probe)
        names = sorted(p.name for p in folder.glob("probe/*") if p.is_dir()) if first.exported and probe is None else []
        more = [first if name == first.probe else campaign_folder.load(folder, name) for name in names]
        for one in more or [first]:
            if (twice := next((had for had in found if had.probe == one.probe), None)) is not None:
                raise FolderError(
                    f"{one.probe} is in {twice.folder} and in {folder}: its runs would count twice; hint: one export of both times"
                )
            one.remarks = [] if len(more) > 1 else one.remarks
            found.append(one)
    return found if len(found) < 2 else _once(sorted(found, key=lambda one: one.probe))


def _once(kits: list[CampaignFolder]) -> list[CampaignFolder]:
    """Runs that lie in two kits' folders count for the first."""
    seen: dict[str, str] = {}
    for kit in kits:
        twice = sorted({str(m["id"]) for m in kit.manifests} & seen.keys())
        kit.left_out |= set(twice)
        kit.manifests = [m for m in kit.manifests if str(m["id"]) not in seen]
        seen |= {str(m["id"]): kit.probe for m in kit.manifests}
        if twice:
            kit.problems.append(f"{len(twice)} runs are {seen[twice[0]]}'s too and count there ({twice[0]})")
    return kits


def pool(kits: Sequence[Kit], by: str | None = None, given: tuple[Fit, str] | None = None) -> Pool:
    """``kits``: at least one; ``by``, one of ``BY``, parts figures and tables. ``given``: a fit of mobility classes from elsewhere."""
    kits = list(kits)
    several = len(kits) > 1
    if several:
        for kit in kits:
            _name_paths(kit)
    known = given or (fitted([times_of(kit.evaluation) for kit in kits]) if several else None)
    judged = [classes_of(kit.evaluation, known) for kit in kits]
    first = judged[0]
    classes = RunClasses(first.fit, first.fitted_on, {run: one for own in judged for run, one in own.runs.items()})
    materials = [
        material(kit.evaluation, kit.bins, kit.packets.series if kit.packets else None, own)
        for kit, own in zip(kits, judged, strict=True)
    ]
    grouped: dict[str, list[Material]] = {}
    if by is not None:
        for kit, own in zip(kits, materials, strict=True):
            grouped.setdefault(kit.part(by), []).append(own)
    return Pool(
        kits,
        by,
        _results(kits, by) if several or by is not None else kits[0].evaluation.results,
        classes if several else first,
        pooled(materials, classes) if several else materials[0],
        {part: pooled(of, classes) for part, of in sorted(grouped.items())},
        marks(kits),
        [line for kit in kits for line in _lines(kit, kit.evaluation.missing, several=several)],
    )


def _lines(kit: Kit, lines: Sequence[str], *, several: bool) -> list[str]:
    return [f"{kit.probe}: {line}" if several and not line.startswith(kit.probe) else line for line in lines]


def _name_paths(kit: Kit) -> None:
    """Paths of no known operator are the kit's own: path ``a`` of two kits are two networks."""
    e, own = kit.evaluation, kit.campaign.operators
    for series in e.recorded.radio.values():
        if series.operator != series.path:
            own.setdefault(series.path, series.operator)
    for path in sorted({*(p for m in kit.campaign.manifests for p in run_paths(m)), *e.recorded.radio}):
        own.setdefault(path, f"{kit.probe}/{path}")

    def flow(one: SubflowSeries) -> SubflowSeries:
        return one if one.operator is not None else replace(one, operator=own.get(one.path or ""))

    recorded = e.recorded
    recorded.radio = {path: replace(series, operator=own[path]) for path, series in recorded.radio.items()}
    recorded.events = [replace(one, operator=one.operator or own.get(one.path or "")) for one in recorded.events]
    recorded.subflows = [flow(one) for one in recorded.subflows]
    if kit.packets is not None:
        kit.packets = replace(
            kit.packets, series={run: [flow(one) for one in flows] for run, flows in kit.packets.series.items()}
        )


def _results(kits: Sequence[Kit], by: str | None) -> Results:
    """Arms are told apart over all kits' runs."""
    found = gather([m for kit in kits for m in kit.campaign.manifests], Path())
    owners = [kit for kit in kits for _ in kit.campaign.manifests]
    runs = [
        replace(
            run,
            own=kit.campaign.folder / "probe" / kit.probe,
            probe=kit.probe,
            operators=kit.campaign.operators,
            part={} if by is None else {COLUMNS[by]: kit.part(by)},
        )
        for run, kit in zip(found, owners, strict=True)
    ]
    counts: dict[str, Counter[str]] = {}
    for kit in kits:
        for name, steps in planned(kit.campaign.folder / "probe" / kit.probe).items():
            counts.setdefault(name, Counter()).update(steps)
    return of_facts(runs, {name: dict(steps) for name, steps in counts.items()})


def marks(kits: Sequence[Kit]) -> list[str]:
    """What makes some figures mean less than they seem to, a line each."""
    found: list[str] = []
    for kit in kits:
        runs = kit.campaign.manifests
        if unset := sum(whole(m, "started_utc_ns") is None for m in runs):
            found.append(
                f"{kit.probe}: {unset} of {len(runs)} runs tell no time, its clock was not set: they have no mobility class but a label's,"
                " and no radio beside them"
            )
        recorded = kit.evaluation.recorded
        if steps := sum(map(len, recorded.recoveries.values())):
            events = sum(e.recovering and e.kind in ("handover", "signal_drop") for e in recorded.events)
            found.append(
                f"{kit.probe}: a modem was switched off and on {steps} times to recover it: {events} handovers and signal drops and "
                f"{recorded.left_out} round trips of these times are left out"
            )
        if kit.cut:
            found.append(
                f"{kit.probe}: {len(kit.cut)} captures are cut or damaged ({kit.cut[0]}): figures have what could be read of them"
            )
        found += [
            f"{kit.probe}: path {path} was {names}: its runs are under the first" for path, names in _renamed(runs)
        ]
        if len(kit.cities) > 1:
            found.append(f"{kit.probe}: it measured in {' and '.join(kit.cities)}: by city it is a part of its own")
    return found + _changed(kits) + _players(kits)


def _players(kits: Sequence[Kit]) -> list[str]:
    """Campaigns whose videos were played by several players: a kit has VLC or has not."""
    played: dict[str, Counter[str]] = {}
    for kit in kits:
        for manifest in kit.campaign.manifests:
            name = text(mapping(mapping(manifest, "result"), "player"), "name")
            if name is not None:
                played.setdefault(text(mapping(manifest, "campaign"), "name") or "dash", Counter())[name] += 1
    return [
        f"{campaign}: plays by several players ({', '.join(f'{name}: {n}' for name, n in sorted(counts.items()))}): they are pooled,"
        " and apart in the table dash"
        for campaign, counts in played.items()
        if len(counts) > 1
    ]


def _renamed(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Paths that had several operators."""
    names: dict[str, dict[str, None]] = {}
    for manifest in runs:
        for one in mappings(mapping(dict(manifest), "result"), "subflows"):
            if (path := text(one, "path")) is not None and (operator := text(one, "operator")) is not None:
                names.setdefault(path, {})[operator] = None
    return [(path, ", then ".join(own)) for path, own in names.items() if len(own) > 1]


def _changed(kits: Sequence[Kit]) -> list[str]:
    """Campaigns that were not the same for all runs: by the hash of their file, else by form and the experiments' versions."""
    kinds: dict[str, dict[tuple[str, str], Counter[str]]] = {}
    for kit in kits:
        for manifest in kit.campaign.manifests:
            campaign, experiment = mapping(manifest, "campaign"), mapping(manifest, "experiment")
            if (name := text(campaign, "name")) is None:
                continue
            versions = kinds.setdefault(name, {})
            for what, told in (
                ("file", text(campaign, "sha256")),
                ("form", text(campaign, "form")),
                (f"version of {text(experiment, 'name')}", whole(experiment, "version")),
            ):
                if told is not None:
                    versions.setdefault((what, str(told)), Counter())[kit.probe] += 1
    found = []
    for name, versions in kinds.items():
        for what in dict.fromkeys(what for what, _ in versions):
            own = [(told, counts) for (kind, told), counts in versions.items() if kind == what]
            if len(own) > 1:
                each = "; ".join(
                    f"{told[:12]}: {', '.join(f'{n} runs of {probe}' for probe, n in counts.items())}"
                    for told, counts in own
                )
                found.append(f"{name} was changed, its {what} is not the same for all runs ({each}): they are pooled")
    return found
