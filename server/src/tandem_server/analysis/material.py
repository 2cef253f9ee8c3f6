"""What a campaign has for the papers' figures, in one place: measurements, network events, spans of one mobility class, series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis import measured
from tandem_server.analysis.estimates import Histogram
from tandem_server.analysis.events import FIVE_MINUTES_S, NetworkEvent, Recovery, recovery
from tandem_server.analysis.measured import BandwidthRound, DelayRound, Download, Load, Play, Setting
from tandem_server.analysis.mobility_classes import Fit, RunClasses, Times, class_of, run_classes
from tandem_server.analysis.reading import mapping, text
from tandem_server.analysis.recorded import RadioSeries, SubflowSeries
from tandem_server.analysis.round_trips import PathTrips
from tandem_server.analysis.runs import run_paths, span
from tandem_server.analysis.scores import spans
from tandem_server.analysis.tables.facts import Facts

if TYPE_CHECKING:  # what it is made of
    from tandem_server.analysis.evaluate import Evaluation

Array = NDArray[np.float64]
CONTROLLED = "controlled"


class Span(NamedTuple):
    """Of one mobility class, s since the campaign's start."""

    start_s: float
    end_s: float
    mobility: str


@dataclass(frozen=True, slots=True)
class Bins:
    """One run in bins of a packet capture (``captures``), arrays of one length, absent values NaN. ``path``: whose subflows' bytes in
    flight, "" where it is not known; None: of the whole connection, whose ``reorder_queue_bytes`` it is. Over the whole run, where the
    tables tell: ``rtts`` of the path's subflows, and how long the whole connection's packets waited in that queue."""

    run: str
    path: str | None
    t_s: Array
    in_flight_bytes: Array
    reorder_queue_bytes: Array
    rtts: Histogram | None = None
    waits: Histogram | None = None


@dataclass(slots=True)
class Material:
    """Of one kit, or of several pooled: then times are each kit's own, and what joins by time (events, spans, series, runs) asks ``each``
    kit. ``bins`` is empty where no captures were analysed."""

    operators: dict[str, str] = field(default_factory=dict)
    downloads: list[Download] = field(default_factory=list)
    held: list[Download] = field(default_factory=list)
    """Downloads whose request waited for the further subflows: no ordinary ones, and in no figure but that of the join."""
    plays: list[Play] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    bandwidth: list[BandwidthRound] = field(default_factory=list)
    delay: list[DelayRound] = field(default_factory=list)
    surveys: list[Facts] = field(default_factory=list)
    events: list[NetworkEvent] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    radio: dict[str, RadioSeries] = field(default_factory=dict)
    flows: dict[tuple[str, str], list[SubflowSeries]] = field(default_factory=dict)
    """By run and end."""
    connections: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    """Times and goodputs of whole connections at the probe, by run."""
    bins: list[Bins] = field(default_factory=list)
    packets: Mapping[str, Sequence[SubflowSeries]] = field(default_factory=dict)
    """Subflows of the captures by run, RTT and goodput by bin; empty where none were analysed or matched."""
    classes: RunClasses = field(default_factory=RunClasses)
    round_trips: Mapping[str, PathTrips] = field(default_factory=dict)
    """By path, asked all the time."""
    roles: dict[str, str] = field(default_factory=dict)
    """By role the path, of all campaigns' runs."""
    probe: str = ""
    """Whose it is; "" of several."""
    kits: tuple[Material, ...] = ()
    """Of a pool; none of one kit."""

    @property
    def each(self) -> tuple[Material, ...]:
        """Every kit by itself."""
        return self.kits or (self,)

    def place(self, path: str) -> str:
        """What a path of one kit is in a paper's words, by its role in any campaign; else its operator."""
        return place(path, self.roles, self.operators)

    def of_run(self, run: str, end: str) -> list[SubflowSeries]:
        """The subflows of one run at one end, ``probe`` or ``server``, in order of path."""
        return self.flows.get((run, end), [])

    def at_best(self, run: str) -> Sequence[SubflowSeries]:
        """The subflows of one run: of its captures where those are there, else the sender's records. A record of a time in which nothing
        was acknowledged repeats the RTT of the one before: none was measured."""
        return self.packets.get(run) or [
            replace(one, rtt_ms=np.where(one.goodput_bit_per_s == 0, np.nan, one.rtt_ms))
            for one in self.of_run(run, "server")
        ]

    def recovery(self, run: str, series: SubflowSeries, event: NetworkEvent) -> Recovery:
        """What an event of the operator of one of ``at_best(run)`` did to it, to the end of the run's data or its next event."""
        carried = [one.t_s[one.goodput_bit_per_s > 0] for one in self.at_best(run)]
        end_s = max((float(t[-1]) for t in carried if len(t)), default=-math.inf)
        later = (e.t_s for e in self.events if e.operator == event.operator and e.t_s > event.t_s)
        return recovery(series.t_s, series.rtt_ms, event.t_s, min(later, default=math.inf), end_s)

    def source(self, runs: Iterable[str]) -> str:
        """Of what ``at_best`` is, for a figure's note."""
        every = set(runs)
        seen = sum(bool(self.packets.get(run)) for run in every)
        told = ((seen, "bins of the captures"), (len(every) - seen, "the sender’s records"))
        return "RTT: " + ", ".join(f"{what} (runs: {n})" for n, what in told if n) + "."

    def class_at(self, t_s: float) -> str | None:
        """The mobility class at a time."""
        return next((s.mobility for s in self.spans if s.start_s <= t_s < s.end_s), None)

    def named(self) -> list[str]:
        """All operators, once each."""
        return list(dict.fromkeys([*self.operators.values(), *(s.operator for s in self.radio.values())]))


def place(path: str, roles: Mapping[str, str], operators: Mapping[str, str]) -> str:
    """What a path is in a paper's words, by its role; else its operator."""
    words = {"wifi": "Wi-Fi", "cellular": "cellular"}
    named = (words[role] for role, one in roles.items() if one == path and role in words)
    return next(named, operators.get(path, path))


def pooled(kits: Sequence[Material], classes: RunClasses) -> Material:
    """Several kits' as one, in their order, or one as a part of such. Runs have ids of their own; paths go as ``KIT/PATH``."""
    joint: dict[str, Any] = {}
    for name in ("downloads", "held", "plays", "loads", "bandwidth", "delay", "surveys", "events", "spans", "bins"):
        joint[name] = [one for kit in kits for one in getattr(kit, name)]
    for name in ("flows", "connections", "packets"):
        joint[name] = {run: one for kit in kits for run, one in getattr(kit, name).items()}
    for name in ("operators", "radio"):
        joint[name] = {f"{kit.probe}/{path}": one for kit in kits for path, one in getattr(kit, name).items()}
    return Material(classes=classes, kits=tuple(kits), **joint)


def material(
    e: Evaluation,
    bins: list[Bins] | None = None,
    packets: Mapping[str, Sequence[SubflowSeries]] | None = None,
    classes: RunClasses | None = None,
) -> Material:
    """From an evaluated campaign. ``bins``, ``packets``: of its captures, where somebody analysed them; ``classes``: where they are known
    already."""
    manifests = {str(m["id"]): m for m in e.campaign.manifests}
    made = Material(
        operators=dict(e.campaign.operators),
        events=list(_events(e)),
        radio=e.recorded.radio,
        flows=e.recorded.flows(),
        connections=e.recorded.connections,
        bins=list(bins or []),
        packets=packets or {},
        classes=classes or classes_of(e),
        probe=e.campaign.probe,
        round_trips=e.recorded.round_trips,
    )
    for run in e.results.runs:
        of = replace(setting(e, run, manifests[run.id]), operators=e.campaign.operators)
        made.roles |= of.roles
        if run.experiment == "download" and (one := measured.download(of, run)) is not None:
            (made.held if one.held else made.downloads).append(_with_series(one, made.of_run(one.of.run, "server")))
        elif run.experiment == "dash" and (shown := measured.play(of, run)) is not None:
            made.plays.append(shown)
        elif run.experiment == "pageload":
            made.loads += measured.loads(of, run)
        elif run.experiment == "bandwidth":
            made.bandwidth += measured.bandwidth_rounds(of, run)
        elif run.experiment == "delay":
            made.delay += measured.delay_rounds(of, run)
        elif run.experiment == "reachability" and run.result:
            made.surveys.append(run)
    made.spans = list(_spans(e, manifests))
    return made


def _with_series(one: Download, flows: Sequence[SubflowSeries]) -> Download:
    """With round-trip times from the sender's records where there are any: they go before what the probe could know."""
    middle, least = dict(one.rtt_ms), dict(one.rtt_min_ms)
    for series in flows:
        known = series.rtt_ms[np.isfinite(series.rtt_ms)]
        if series.path is not None and len(known):
            middle[series.path] = float(np.median(known))
            least[series.path] = float(known.min())
    return replace(one, rtt_ms=middle, rtt_min_ms=least)


def setting(e: Evaluation, run: Facts, manifest: Mapping[str, Any]) -> Setting:
    """Under what a run was made."""
    campaign = mapping(manifest, "campaign")
    start, end = span(manifest, e.clock)
    label = text(campaign, "label") or ""
    doing = None if start is None or end is None else e.doing(start, end)
    shape = mapping(mapping(manifest, "conditions"), "shape")
    asked = {path: mapping(told, "asked") for path, told in shape.items() if isinstance(told, dict)}
    return Setting(
        run.id,
        run.campaign,
        run.step,
        label,
        {k: v for k, v in mapping(campaign, "roles").items() if isinstance(v, str)},
        asked or _of_the_bench(e, start, end),
        tuple(run_paths(manifest)),
        class_of(label, doing),
        start,
        end,
        scheduler=text(mapping(mapping(mapping(manifest, "environment"), "experiment"), "server"), "scheduler") or "",
    )


def _of_the_bench(e: Evaluation, start: float | None, end: float | None) -> Mapping[str, Mapping[str, Any]]:
    """What a bench made of the links for the whole of a run; nothing where it made it only for a part."""
    shapes = e.campaign.truth.shapes if e.campaign.truth is not None else []
    if start is None or end is None:
        return {}
    return next((dict(s.paths) for s in shapes if s.start_s <= start and end <= s.end_s), {})


def _events(e: Evaluation) -> Iterator[NetworkEvent]:
    for event in e.recorded.events:
        if event.operator is None:
            continue
        if event.kind == "handover":
            yield NetworkEvent(event.t_s, event.operator, "handover")
        elif event.kind == "signal_drop" and event.change_db is not None:
            yield NetworkEvent(event.t_s, event.operator, "drop", event.change_db)


def _spans(e: Evaluation, manifests: Mapping[str, Mapping[str, Any]]) -> Iterator[Span]:
    """Phases that a bench played; else labelled runs; else what the probe's own detector said."""
    if e.campaign.truth is not None and e.campaign.truth.phases:
        for phase in e.campaign.truth.phases:
            if (named := class_of("", phase.activity)) is not None:
                yield Span(phase.start_s, phase.end_s, named)
        return
    if labelled := _labelled(_runs(e, manifests)):
        yield from _joined(labelled)
    elif e.recorded.radio:
        for start, end, moving in spans(e.found_mobility, 0.0, e.end_s):
            yield Span(start, end, "moving" if moving else "static")


def classes_of(e: Evaluation, given: tuple[Fit | None, str] | None = None) -> RunClasses:
    """By the frequency of events. ``given``: a fit, and what it was made of."""
    return run_classes(times_of(e), given)


def times_of(e: Evaluation) -> Times:
    """What the classes are fitted on and judged by."""
    polled = [float(t) for series in e.recorded.radio.values() for t in (series.t_s[0], series.t_s[-1])]
    runs = _runs(e, {str(m["id"]): m for m in e.campaign.manifests})
    labelled = _joined(_labelled(runs), FIVE_MINUTES_S)
    phases = e.campaign.truth.phases if e.campaign.truth is not None else []
    played = [(p.start_s, p.end_s, named) for p in phases if (named := class_of("", p.activity)) is not None]
    return Times(
        [event.t_s for event in _events(e)],
        (min(polled), max(polled)) if polled else None,
        list(labelled),
        played,
        runs,
    )


def _runs(e: Evaluation, manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[float, float, str | None]]:
    """Begin, end and labelled class of those that have a time."""
    found = {}
    for run, manifest in manifests.items():
        start, end = span(manifest, e.clock)
        if start is not None and end is not None:
            found[run] = start, end, class_of(text(mapping(manifest, "campaign"), "label") or "", None)
    return found


def _labelled(runs: Mapping[str, tuple[float, float, str | None]]) -> list[Span]:
    return [Span(start, end, label) for start, end, label in runs.values() if label is not None]


def _joined(found: list[Span], pause_s: float = 0.0) -> Iterator[Span]:
    """Runs at one time, as those of a pair, are one span; so are those of one class at most ``pause_s`` apart, none of another between."""
    last: Span | None = None
    for one in sorted(found, key=lambda s: (s.start_s, s.end_s)):
        if last is not None and one.mobility == last.mobility and one.start_s <= last.end_s + pause_s:
            last = Span(last.start_s, max(last.end_s, one.end_s), last.mobility)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last
