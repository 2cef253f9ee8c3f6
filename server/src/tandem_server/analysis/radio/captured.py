"""A campaign's ``radio_packets``, where ``tandem-server analyse DIR/probe --out DIR/traces`` was run: the tables read, matched, joined."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.folder import Capture, probe_of
from tandem_server.analysis.papers.folder_bins import FOLDER
from tandem_server.analysis.radio.effects import RULE, joined
from tandem_server.analysis.radio.matched import CONNECTIONS, SUBFLOWS, TOTALS, Matched, matched
from tandem_server.analysis.radio.shapes import Binned, Flows, Joined, Radio, Rule
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.traces import manifest

BINS = ("subflow", "direction", "bin_start_utc_ns", "goodput_bytes", "rtt_mean_ns", "rtt_max_ns")
KINDS = ("signal_drop", "handover")


@dataclass(frozen=True, slots=True)
class Packets:
    """``joined``: the table. ``series``: by run each subflow's bins as series, in order of path, for the figures."""

    joined: Joined
    series: Mapping[str, Sequence[SubflowSeries]]


def of_campaign(e: Evaluation, rule: Rule = RULE) -> Packets | None:
    """None where no captures were analysed. ImportError: pyarrow or the native pass is lacking; ManifestError."""
    place = e.campaign.folder / FOLDER
    campaign = e.campaign
    parts = manifest.read(place)
    if not parts:
        return None
    width, own = next(iter(parts.values())).bin_ns, {None, campaign.probe}
    parts = {name: part for name, part in parts.items() if any(probe_of(one.file) in own for one in part.files)}
    if not parts:
        return None
    found, binned = read(place, sorted(parts), width, campaign.manifests, campaign.captures, e.clock.start_utc_ns)
    made = joined(radio_of(e), found.flows, binned, rule)
    made.account |= found.account
    made.rows = {**made.rows, "probe": [campaign.probe] * len(made)}
    return Packets(made, _series(e, found.flows, binned))


def radio_of(e: Evaluation) -> Radio:
    """The modems' events, in order of time."""
    own = [event for event in e.recorded.events if event.kind in KINDS and event.path is not None]
    return Radio(
        np.array([round(event.t_s * 1e9) for event in own], dtype=np.int64),
        [event.path or "" for event in own],
        [event.kind for event in own],
        np.array([np.nan if event.change_db is None else event.change_db for event in own], dtype=np.float64),
    )


def read(
    place: Path,
    names: Sequence[str],
    width: int,
    manifests: Sequence[Mapping[str, Any]],
    captures: Sequence[Capture],
    start: int,
) -> tuple[Matched, Binned]:
    """The subflows of these runs and their bins, ``width`` ns each, of parts ``names``; times since ``start``, UTC ns."""
    parquet = importlib.import_module("tandem_server.analysis.traces.parquet")
    codes = importlib.import_module("tandem_server.analysis.traces.columns")
    connections, subflows, totals = (
        parquet.columns(place, table, names, wanted)
        for table, wanted in (("connections", CONNECTIONS), ("subflows", SUBFLOWS), ("totals", TOTALS))
    )
    found = matched(manifests, captures, connections, subflows, totals, start, codes.NAMES["rtt_method"])
    number = {name: n for n, name in enumerate(connections["files"])}
    pieces = [_bins(parquet.columns(place, "bins", [name], BINS), found, number, start, width) for name in names]
    joint = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    order = np.lexsort((joint[1], joint[0]))
    flow, at, goodput, mean, most = (column[order] for column in joint)
    return found, Binned(width, -start % width, flow.astype(np.int64), at.astype(np.int64), goodput, mean, most)


def _bins(
    rows: Mapping[str, Any], found: Matched, number: Mapping[str, int], start_utc_ns: int, width: int
) -> tuple[NDArray[Any], ...]:
    """Those of the matched subflows in their data's direction."""
    own = np.flatnonzero(~np.isnan(np.asarray(rows["subflow"], dtype=np.float64)))
    files = np.array([number.get(name, -1) for name in rows["files"]], dtype=np.int64)
    subflow = np.asarray(rows["subflow"], dtype=np.float64)[own].astype(np.int64)
    key = ((files[rows["file"][own]] + 1) << 33) | (subflow << 1) | np.asarray(rows["direction"])[own]
    mine = ((found.file + 1) << 33) | (found.flows.subflow << 1) | found.direction
    order = np.argsort(mine, kind="stable")
    at = np.minimum(np.searchsorted(mine[order], key), max(len(mine) - 1, 0))
    hit = np.flatnonzero(mine[order][at] == key) if len(mine) else np.empty(0, dtype=np.int64)
    flow, taken = order[at[hit]] if len(mine) else hit, own[hit]
    since = np.asarray(rows["bin_start_utc_ns"])[taken].astype(np.int64) - start_utc_ns - (-start_utc_ns % width)
    values = [np.asarray(rows[name], dtype=np.float64)[taken] for name in BINS[3:]]
    return (flow, since // width, values[0], values[1] / 1e6, values[2] / 1e6)


def _series(e: Evaluation, flows: Flows, binned: Binned) -> dict[str, list[SubflowSeries]]:
    made: dict[str, list[SubflowSeries]] = {}
    low = np.searchsorted(binned.flow, np.arange(len(flows.run)))
    high = np.searchsorted(binned.flow, np.arange(len(flows.run)), side="right")
    middle = (binned.place * binned.width_ns + binned.offset_ns + binned.width_ns // 2) / 1e9
    rate = binned.goodput_bytes * (8e9 / binned.width_ns)
    for n in sorted(range(len(flows.run)), key=lambda n: (flows.path[n], n)):
        rows = slice(low[n], high[n])
        path = flows.path[n]
        operator = e.campaign.operators.get(path)
        name = f"{flows.file[n]} {flows.subflow[n]}"
        one = SubflowSeries(
            flows.run[n], name, "capture", path, operator, middle[rows], rate[rows], binned.rtt_mean_ms[rows]
        )
        made.setdefault(flows.run[n], []).append(one)
    return made
