"""truth.jsonl: what the bench did, with times. Read whole; a cut or strange line is counted and left out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.reading import flag, mapping, number, text, whole

Array = NDArray[np.float64]
LONGEST_S = 1e7
"""Four months: a time beyond it is no campaign's."""


_OF_OPERATOR = {"radio", "handover", "signal_drop", "fault", "link", "link_log"}


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the scenario, from ``start_s`` to ``end_s``, with the activity it plays."""

    start_s: float
    end_s: float
    name: str
    activity: str


@dataclass(frozen=True, slots=True)
class TrueShape:
    """What the bench made of paths' links for some time, as a run's own shape says it (``rtt_ms``: added), by path."""

    start_s: float
    end_s: float
    paths: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TrueHandover:
    """A change of serving cell as played."""

    t_s: float
    operator: str
    from_eci: int | None
    to_eci: int | None


@dataclass(frozen=True, slots=True)
class TrueDrop:
    """A fall of RSRP by 6 dB or more within a second; ``change_db`` is negative."""

    t_s: float
    operator: str
    change_db: float


@dataclass(frozen=True, slots=True)
class TrueFault:
    """A modem fault that was played."""

    t_s: float
    operator: str
    fault: str


@dataclass(frozen=True, slots=True)
class Link:
    """One operator's downlink as commanded: each value holds until the next. Arrays of one length; outages are 0 bit/s."""

    t_s: Array
    down_bit_per_s: Array


@dataclass(frozen=True, slots=True)
class Level:
    """One operator's RSRP as played, dBm: each value holds until the next. Arrays of one length; NaN where there was none."""

    t_s: Array
    rsrp_dbm: Array


@dataclass(slots=True)
class Truth:
    """All of it, in seconds since ``epoch_monotonic_ns`` (the scenario's start)."""

    epoch_monotonic_ns: int | None = None
    epoch_utc_ns: int | None = None
    phases: list[Phase] = field(default_factory=list)
    shapes: list[TrueShape] = field(default_factory=list)
    mobility: list[tuple[float, bool]] = field(default_factory=list)
    handovers: list[TrueHandover] = field(default_factory=list)
    drops: list[TrueDrop] = field(default_factory=list)
    faults: list[TrueFault] = field(default_factory=list)
    levels: dict[str, Level] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    end_s: float = 0.0
    strange_lines: int = 0
    cut: bool = False


def read(lines: Iterable[bytes]) -> Truth:
    """Truth from the lines of the file. Unknown types are passed over, so that a newer bench can be read."""
    truth = Truth()
    links: dict[str, list[tuple[float, float]]] = defaultdict(list)
    levels: dict[str, list[tuple[float, float]]] = defaultdict(list)
    last_bad = False
    for line in lines:
        if not line.strip():
            continue
        last_bad = False
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            truth.strange_lines += 1
            last_bad = True
            continue
        if not isinstance(entry, dict) or not _take(truth, entry, links, levels):
            truth.strange_lines += 1
    if last_bad:
        truth.cut = True
        truth.strange_lines -= 1
    truth.links = {operator: Link(*np.array(sorted(pairs), dtype=np.float64).T) for operator, pairs in links.items()}
    truth.levels = {operator: Level(*np.array(sorted(pairs), dtype=np.float64).T) for operator, pairs in levels.items()}
    truth.mobility.sort(key=lambda change: change[0])
    return truth


def _take(
    truth: Truth,
    entry: Mapping[str, Any],
    links: dict[str, list[tuple[float, float]]],
    levels: dict[str, list[tuple[float, float]]],
) -> bool:
    t, kind, operator = number(entry, "t_s"), text(entry, "type"), text(entry, "operator")
    if t is None or abs(t) > LONGEST_S or kind is None:
        return False
    if truth.epoch_monotonic_ns is None:
        monotonic, utc = whole(entry, "monotonic_ns"), whole(entry, "utc_ns")
        if monotonic is not None:
            truth.epoch_monotonic_ns = monotonic - round(t * 1e9)
            truth.epoch_utc_ns = None if utc is None else utc - round(t * 1e9)
    truth.end_s = max(truth.end_s, t)
    if kind in _OF_OPERATOR and operator is None:
        return False
    name, until = operator or "", number(entry, "until_s")
    moving, paths = flag(entry, "moving"), mapping(entry, "paths")
    change, down = number(entry, "change_db"), number(entry, "down_bit_per_s")
    match kind:
        case "phase":
            named, activity = text(entry, "name") or "", text(entry, "activity") or "unknown"
            truth.phases.append(Phase(t, t if until is None else until, named, activity))
        case "shape" if until is not None and all(isinstance(told, dict) for told in paths.values()):
            truth.shapes.append(TrueShape(t, until, paths))
        case "mobility" if moving is not None:
            truth.mobility.append((t, moving))
        case "radio":
            rsrp = number(entry, "rsrp_dbm")
            levels[name].append((t, float("nan") if rsrp is None else rsrp))
        case "handover":
            truth.handovers.append(TrueHandover(t, name, whole(entry, "from_eci"), whole(entry, "to_eci")))
        case "signal_drop" if change is not None:
            truth.drops.append(TrueDrop(t, name, change))
        case "fault":
            truth.faults.append(TrueFault(t, name, text(entry, "fault") or "unknown"))
        case "link" if down is not None:
            links[name].append((t, 0.0 if flag(entry, "outage") else down))
        case "shape" | "mobility" | "signal_drop" | "link":
            return False
    return True
