"""What boards show of a run's captures: a point for each subflow and one for the connection (docs/reference/ledger.md, ``run_trace``),
and both second by second (``run_trace_second``).

What that costs is bounded: a subflow, and the connection, of a run have at most ``MOST`` points; of a run that is longer each is of several
seconds. Rates, so that these mean the same.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.schema.line_protocol import Point
from tandem.schema.record import RecordError, Value
from tandem.schema.trace import SERVER_CAPTURES
from tandem_server.analysis.captures import KINDS, WAYS, read
from tandem_server.analysis.folder import Capture, capture_name
from tandem_server.analysis.radio_packets import BEFORE_NS, LONGEST_NS, Flow, RadioEvent, joined
from tandem_server.analysis.reading import mapping, mappings, text
from tandem_server.analysis.traces import tables
from tandem_server.derived.tables import BIN_NS, runs_of
from tandem_server.registry import Registry, TraceRow
from tandem_server.schema.measurements import RUN_TRACE, RUN_TRACE_SECOND, check_server, encode_point
from tandem_server.store import Influx
from tandem_server.store.influx import literal

COLUMNS = (
    *("connection", "subflow", "direction", "bin_start_utc_ns", "goodput_bytes", "duplicate_bytes", "hole_fill_bytes"),
    *("reinjected_bytes", "rtt_samples", "rtt_mean_ns", "reorder_queue_max_bytes"),
)
MOST = 600
_SECOND_NS = 10**9
_RATES = {
    "goodput_bit_per_s": ("goodput_bytes",),
    "again_bit_per_s": ("duplicate_bytes", "hole_fill_bytes"),
    "reinjected_bit_per_s": ("reinjected_bytes",),
}

Fields = dict[str, Value]


class Seconds:
    """``bins``: columns of the part's bins, of one file."""

    def __init__(self, bins: Mapping[str, Any]) -> None:
        self._of = {name: np.asarray(bins[name], dtype=np.float64) for name in COLUMNS if name != "bin_start_utc_ns"}
        self._start = np.asarray(bins["bin_start_utc_ns"], dtype=np.int64)

    def of(
        self, connection: int, subflow: int | None, direction: int, recovered: Mapping[int, float]
    ) -> Iterator[tuple[int, Fields]]:
        """Time and fields of each point, in order; ``subflow`` None: the connection's. ``recovered``: t_R in s by the event's time, UTC
        ns; those before the first bin and behind the last are left out."""
        which = self._of["subflow"]
        mine = np.isnan(which) if subflow is None else which == subflow
        rows = np.flatnonzero(mine & (self._of["connection"] == connection) & (self._of["direction"] == direction))
        if not len(rows):
            return
        start = self._start[rows]
        width = max(1, -(-int(start.max() - start.min() + _SECOND_NS) // (MOST * _SECOND_NS))) * _SECOND_NS
        place, number = np.unique(start // width, return_inverse=True)

        def added(name: str) -> NDArray[np.float64]:
            return np.bincount(number, np.nan_to_num(self._of[name][rows]), len(place)).astype(np.float64)

        rates = {name: np.sum([added(one) for one in own], axis=0) * (8e9 / width) for name, own in _RATES.items()}
        samples = np.where(
            np.isfinite(self._of["rtt_mean_ns"][rows]), np.nan_to_num(self._of["rtt_samples"][rows]), 0.0
        )
        weighed = np.bincount(number, samples * np.nan_to_num(self._of["rtt_mean_ns"][rows]), len(place))
        counts = np.bincount(number, samples, len(place))
        queue = np.full(len(place), -1.0)
        np.maximum.at(queue, number, np.nan_to_num(self._of["reorder_queue_max_bytes"][rows], nan=-1.0))
        longest: dict[int, float] = {}
        for at, t_r_s in recovered.items():
            longest[at // width] = max(t_r_s, longest.get(at // width, 0.0))
        for n, at in enumerate(place.tolist()):
            fields: Fields = {name: float(values[n]) for name, values in rates.items()}
            if counts[n] > 0:
                fields["rtt_mean_ms"] = float(weighed[n] / counts[n]) / 1e6
            if subflow is None and queue[n] >= 0:
                fields["reorder_queue_max_bytes"] = int(queue[n])
            if at in longest:
                fields["t_r_s"] = longest[at]
            yield at * width, fields


# --- Points for a run -----------------------------------------------------------------------------------------------

_LOG = logging.getLogger("tandem.tables")
_TOTALS = (
    *("connection", "subflow", "direction", "goodput_bytes", "duplicate_bytes", "hole_fill_bytes", "reinjected_bytes"),
    *("rtt_median_ns", "rtt_p95_ns", "reorder_queue_max_bytes"),
)
_BYTES = ("goodput_bytes", "duplicate_bytes", "hole_fill_bytes", "reinjected_bytes")

_LINES = 5000


class RunTraces:
    """``tell`` is for ``Tabling``. Points of a run that is told again take the place of those before."""

    def __init__(self, registry: Registry, store: Influx) -> None:
        self._registry, self._store = registry, store

    def tell(self, out: Path, part: str, captures: Sequence[TraceRow]) -> None:
        """Write the points of the runs of one part of the tables. StoreDown, QueryError. The server's own captures are left out: a subflow
        would be there twice, by another clock."""
        if captures[0].name.startswith(SERVER_CAPTURES):
            return
        runs = runs_of(self._registry, captures)
        manifests = [run.manifest for run in runs if isinstance(run.manifest.get("kind"), str)]
        if not manifests:
            return
        probe = captures[0].probe
        try:
            points = self._points(out, part, probe, manifests, captures)
        except (RecordError, KeyError, TypeError, ValueError, IndexError) as error:
            # A manifest comes from outside: one that is not as it should be costs its own points, not the tables.
            _LOG.warning("%s: %s: no points for boards: %r", probe, captures[0].name, error)
            return
        for run in {point.tags["run"] for point in points}:
            for name in (RUN_TRACE.name, RUN_TRACE_SECOND.name):
                self._store.query(f'DELETE FROM "{name}" WHERE "run" = {literal(run)}')  # noqa: S608  quoted
        lines = [encode_point(point) for point in points]
        for some in (lines[at : at + _LINES] for at in range(0, len(lines), _LINES)):
            self._write(some, probe, captures[0].name)

    def _write(self, lines: list[str], probe: str, name: str) -> None:
        for refused in self._store.write(lines):
            _LOG.warning("%s: the database refuses a point of %s: %s", probe, name, refused.reason)

    def _points(
        self, out: Path, part: str, probe: str, manifests: Sequence[Mapping[str, Any]], rows: Sequence[TraceRow]
    ) -> list[Point]:
        totals = {
            (row["connection"], row["subflow"], row["direction"]): row
            for row in tables.read(out, "totals", [part], _TOTALS).to_pylist()
        }
        files = {row["file"] for row in tables.read(out, "connections", [part], ("connection",)).to_pylist()}
        if len(files) != 1:
            return []
        name = capture_name(files.pop())
        own = str(manifests[0]["id"]) if len(manifests) == 1 else None
        path = None if len(rows) > 1 else _path(rows[0].name)
        # Matched by the run's own account, as the papers' figures are: the capture lists every run that may be in it.
        told = [{**one, "files": [{"name": name}]} for one in manifests]
        found, flows, binned, _ = read(out, [part], BIN_NS, told, [Capture(name, 0, None, own, path, False)], 0)
        if not any(flow.path for flow in flows):
            return []
        events = joined(self._radio(probe, flows), flows, binned).rows
        recovered, at = self._recovered(events), _recovered_at(events)
        seconds = Seconds(_columns(tables.read(out, "bins", [part], COLUMNS)))
        connection = {
            flow["subflow"]: one.number for match in found.matches for one in match.parts for flow in one.subflows
        }
        of_manifest = {str(one["id"]): one for one in manifests}
        points: list[Point] = []
        for flow in flows:
            if not flow.path:
                continue
            key, own_number = (flow.run, flow.subflow), connection[flow.subflow]
            fields = _fields(totals[own_number, flow.subflow, WAYS[flow.way]]) | recovered.get(key, {})
            tags = {"probe": probe, "run": flow.run, "kind": flow.kind, "path": flow.path, "subflow": str(flow.subflow)}
            if operator := _operator(of_manifest[flow.run], flow.path):
                tags["operator"] = operator
            points.append(Point(RUN_TRACE.name, tags, fields, flow.start_ns))
            by_second = seconds.of(own_number, flow.subflow, flow.way, at.get(key, {}))
            points += [Point(RUN_TRACE_SECOND.name, tags, of_second, utc_ns) for utc_ns, of_second in by_second]
        for flow in {flow.connection: flow for flow in reversed(flows)}.values():
            own_number = connection[flow.subflow]
            fields = _fields(totals[own_number, None, WAYS[flow.way]])
            tags = {"probe": probe, "run": flow.run, "kind": flow.kind}
            points.append(Point(RUN_TRACE.name, tags, fields, flow.start_ns))
            by_second = seconds.of(own_number, None, flow.way, {})
            points += [Point(RUN_TRACE_SECOND.name, tags, of_second, utc_ns) for utc_ns, of_second in by_second]
        for point in points:
            check_server(point.measurement, point.tags, point.fields)
        return points

    def _radio(self, probe: str, flows: Sequence[Flow]) -> list[RadioEvent]:
        """The modems' events while these subflows lasted, and so long before and after that another one is seen to follow."""
        low = min(flow.start_ns for flow in flows) - BEFORE_NS
        high = max(flow.end_ns for flow in flows) + LONGEST_NS
        kinds = " OR ".join(f"\"kind\" = '{kind}'" for kind in KINDS)
        asked = (
            f'SELECT "seq", "change_db" FROM "event" WHERE "probe" = $probe AND time >= {low} AND time <= {high}'  # noqa: S608  numbers and words of this program
            f' AND ({kinds}) GROUP BY "path", "kind"'
        )
        return sorted(
            RadioEvent(
                int(row[0]), series.tags["path"], series.tags["kind"], math.nan if row[2] is None else float(row[2])
            )
            for series in self._store.query(asked, {"probe": probe})
            if series.tags.get("path")
            for row in series.rows
        )

    def _recovered(self, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], Fields]:
        """By run and subflow its events that stand apart, and t_R of those that have one."""
        known: dict[tuple[str, int], list[float | None]] = defaultdict(list)
        for row in rows:
            known[row["run"], row["subflow"]].append(row["t_r_s"])
        made: dict[tuple[str, int], Fields] = {}
        for key, values in known.items():
            there = [value for value in values if value is not None]
            made[key] = {"events": len(values), "recoveries": len(there)}
            if there:
                made[key] |= {"t_r_median_s": float(np.median(there)), "t_r_max_s": max(there)}
        return made


def _columns(rows: Any) -> dict[str, Any]:  # noqa: ANN401  (pyarrow.Table)
    """As ``Seconds`` takes them: a direction by its place in ``WAYS``, absent NaN."""
    named = {"direction": np.array([WAYS.index(way) for way in rows["direction"].to_pylist()], dtype=np.int64)}
    return {name: rows[name].to_numpy() for name in COLUMNS if name != "direction"} | named


def _recovered_at(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], dict[int, float]]:
    """By run and subflow t_R by the time of its event."""
    found: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for row in rows:
        if row["t_r_s"] is not None:
            found[row["run"], row["subflow"]][round(row["t_s"] * 1e9)] = row["t_r_s"]
    return found


def _fields(total: Mapping[str, Any]) -> Fields:
    """Of one row of ``totals``; absent is absent. The connection's own row has the data-level queue, a subflow's its round trips."""
    fields: Fields = {name: int(total[name]) for name in _BYTES}
    if came := total["goodput_bytes"] + total["duplicate_bytes"]:
        fields["again_percent"] = min(100.0, 100.0 * (total["duplicate_bytes"] + total["hole_fill_bytes"]) / came)
    for name in ("rtt_median", "rtt_p95"):
        if total[f"{name}_ns"] is not None:
            fields[f"{name}_ms"] = total[f"{name}_ns"] / 1e6
    if total["subflow"] is None and total["reorder_queue_max_bytes"] is not None:
        fields["reorder_queue_max_bytes"] = int(total["reorder_queue_max_bytes"])
    return fields


def _path(name: str) -> str | None:
    """Of a capture that is named after its run or pair and its path; None of all paths in one."""
    parts = name.removeprefix("captures/").split(".pcap")[0].split("-", 2)
    return parts[2] if len(parts) > 2 else None


def _operator(manifest: Mapping[str, Any], path: str) -> str | None:
    for one in mappings(mapping(dict(manifest), "parameters"), "paths"):
        if text(one, "name") == path:
            return text(one, "operator")
    return None
