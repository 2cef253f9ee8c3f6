"""The probe's and the server's records of one campaign, by what they describe, on the campaign's time axis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.source import Row, Source

Array = NDArray[np.float64]
NAN = float("nan")
_FIRST_POLL_S = 30.0
"""Within which a modem is polled after the collector's start."""


@dataclass(frozen=True, slots=True)
class RadioSeries:
    """One path's polls in order of time; arrays of one length, absent values NaN. ``eci`` None where not named."""

    path: str
    operator: str
    t_s: Array
    rsrp_dbm: Array
    sinr_db: Array
    eci: list[int | None]
    pci: list[int | None]
    late_ms: Array
    duration_ms: Array
    driver: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something noticed by the probe."""

    t_s: float
    kind: str
    path: str | None
    operator: str | None
    change_db: float | None
    from_eci: int | None
    to_eci: int | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class SubflowSeries:
    """One subflow of one run, read at one ``end`` (``probe`` or ``server``). Absent values NaN."""

    run: str
    subflow: str
    end: str
    path: str | None
    operator: str | None
    t_s: Array
    goodput_bit_per_s: Array
    rtt_ms: Array


@dataclass(slots=True)
class Recorded:
    """All of it. ``connections``: goodput of whole connections at the probe, by run. ``out_of_order``: packets that the probe's TCP
    received out of order (``rcv_ooo_packets``) over a run's subflows, where samples tell it. ``starts``: when the collector began anew,
    its first start apart: what the detectors knew was gone."""

    radio: dict[str, RadioSeries] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    subflows: list[SubflowSeries] = field(default_factory=list)
    connections: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    out_of_order: dict[str, int] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)

    def of_run(self, run: str, end: str) -> list[SubflowSeries]:
        """The subflows of one run at one end, in order of path."""
        return sorted(
            (s for s in self.subflows if s.run == run and s.end == end), key=lambda s: (s.path or "~", s.subflow)
        )


def load(
    source: Source,
    probe: str,
    clock: Clock,
    operators: dict[str, str],
    start_utc_ns: int | None,
    end_utc_ns: int | None,
) -> Recorded:
    """Ask for the campaign's records; SourceError when the source cannot answer."""
    out = Recorded()

    def timed(measurement: str) -> Iterable[tuple[float, Row]]:
        rows = source.rows(measurement, probe, start_utc_ns, end_utc_ns)
        times = [(clock.seconds(row.utc_ns, _whole(row, "monotonic_ns"), row.tags.get("boot")), row) for row in rows]
        return sorted(((t, row) for t, row in times if t is not None), key=lambda pair: pair[0])

    polls: dict[str, list[tuple[float, Row]]] = defaultdict(list)
    boots: dict[str, float] = {}
    for t, row in timed("radio"):
        polls[row.tags.get("path", "")].append((t, row))
        boots.setdefault(row.tags.get("boot", ""), t)
    for modem, rows in sorted(polls.items()):
        operator = operators.get(modem) or rows[0][1].tags.get("operator") or modem
        out.radio[modem] = _radio(modem, operator, rows)
    out.events = [
        Event(
            t,
            row.tags.get("kind", "unknown"),
            row.tags.get("path"),
            row.tags.get("operator") or operators.get(row.tags.get("path", "")),
            _number(row, "change_db"),
            _whole(row, "from_eci"),
            _whole(row, "to_eci"),
            str(row.fields["detail"]) if "detail" in row.fields else None,
        )
        for t, row in timed("event")
    ]
    out.starts = _starts([e.t_s for e in out.events if e.kind == "collector_start"], list(boots.values()))
    flows: dict[tuple[str, str, str], list[tuple[float, Row]]] = defaultdict(list)
    for t, row in timed("subflow"):
        flows[row.tags.get("run", ""), row.tags.get("end", ""), row.tags.get("subflow", "")].append((t, row))
    for (run, end, subflow), rows in sorted(flows.items()):
        counts = [n for _, row in rows if (n := _whole(row, "rcv_ooo_packets")) is not None]
        if end == "probe" and counts:
            out.out_of_order[run] = out.out_of_order.get(run, 0) + max(counts)
        path = next((r.tags["path"] for _, r in rows if "path" in r.tags), None)
        named = next((r.tags["operator"] for _, r in rows if "operator" in r.tags), None)
        out.subflows.append(
            SubflowSeries(
                run,
                subflow,
                end,
                path,
                named or operators.get(path or ""),
                _times(rows),
                _column(rows, "goodput_bit_per_s"),
                _column(rows, "rtt_ms"),
            )
        )
    whole: dict[str, list[tuple[float, Row]]] = defaultdict(list)
    for t, row in timed("connection"):
        if row.tags.get("end") == "probe":
            whole[row.tags.get("run", "")].append((t, row))
    out.connections = {run: (_times(rows), _column(rows, "goodput_bit_per_s")) for run, rows in whole.items()}
    return out


def name_by_run(recorded: Recorded, paths_of_run: Mapping[str, Sequence[str]], operators: Mapping[str, str]) -> None:
    """A run over one path has all its subflows there: give the path to series whose recorder could not know it."""
    for i, series in enumerate(recorded.subflows):
        paths = set(paths_of_run.get(series.run, ()))
        if series.path is None and len(paths) == 1:
            (path,) = paths
            recorded.subflows[i] = replace(series, path=path, operator=series.operator or operators.get(path))


def _starts(told: list[float], boots: list[float]) -> list[float]:
    """``told``: of each start's event; ``boots``: the first poll of each boot, whose start's event may be lost. In order of time."""
    times = sorted(told)
    times += [t for t in boots if not any(0 <= t - start <= _FIRST_POLL_S for start in told)]
    return sorted(times)[1:]


def _radio(path: str, operator: str, rows: list[tuple[float, Row]]) -> RadioSeries:
    return RadioSeries(
        path,
        operator,
        _times(rows),
        _column(rows, "rsrp_dbm"),
        _column(rows, "sinr_db"),
        [_whole(row, "eci") for _, row in rows],
        [_whole(row, "pci") for _, row in rows],
        _column(rows, "poll_late_ms"),
        _column(rows, "poll_duration_ms"),
        rows[0][1].tags.get("driver", ""),
    )


def _times(rows: list[tuple[float, Row]]) -> Array:
    return np.array([t for t, _ in rows], dtype=np.float64)


def _column(rows: list[tuple[float, Row]], name: str) -> Array:
    return np.array([NAN if (v := _number(row, name)) is None else v for _, row in rows], dtype=np.float64)


def _number(row: Row, name: str) -> float | None:
    value = row.fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(row: Row, name: str) -> int | None:
    value = row.fields.get(name)
    if isinstance(value, float) and value.is_integer():  # a database may hand whole numbers back as floats
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
