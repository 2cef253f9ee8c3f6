"""The probe's and the server's records of one campaign, by what they describe, on the campaign's time axis."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO

import numpy as np
from numpy.typing import NDArray

from tandem_server.analysis.reading import number
from tandem_server.analysis.records import EVER, Clock, Piece, Source, Span
from tandem_server.analysis.round_trips import FIELDS, PathTrips
from tandem_server.analysis.round_trips import load as load_round_trips

Array = NDArray[np.float64]
_OF_RADIO = ("rsrp_dbm", "sinr_db", "eci", "poll_late_ms", "poll_duration_ms")
_OF_EVENT = ("change_db", "detail")
_OF_SUBFLOW = ("goodput_bit_per_s", "rtt_ms", "rcv_ooo_packets")
_OF_CONNECTION = ("goodput_bit_per_s",)
_HELD = 1 << 16
"""Numbers of a column that are held in memory."""
_FIRST_POLL_S = 30.0
"""Within which a modem is polled after the collector's start."""


@dataclass(frozen=True, slots=True)
class RadioSeries:
    """One path's polls in order of time; arrays of one length, absent values NaN."""

    path: str
    operator: str
    t_s: Array
    rsrp_dbm: Array
    sinr_db: Array
    eci: Array
    late_ms: Array
    duration_ms: Array

    def cells(self) -> tuple[Array, NDArray[np.int64]]:
        """Time and cell of the polls that named one."""
        named = np.isfinite(self.eci) & (np.floor(self.eci) == self.eci)
        return self.t_s[named], self.eci[named].astype(np.int64)

    def named_cells(self) -> list[tuple[float, int]]:
        """The same, one by one."""
        return list(zip(*(column.tolist() for column in self.cells()), strict=True))


@dataclass(frozen=True, slots=True)
class Event:
    """Something noticed by the probe."""

    t_s: float
    kind: str
    path: str | None
    operator: str | None
    change_db: float | None
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
    round_trips: dict[str, PathTrips] = field(default_factory=dict)

    def flows(self) -> dict[tuple[str, str], list[SubflowSeries]]:
        """The subflows by run and end, in order of path."""
        found: dict[tuple[str, str], list[SubflowSeries]] = {}
        for series in sorted(self.subflows, key=lambda s: (s.path or "~", s.subflow)):
            found.setdefault((series.run, series.end), []).append(series)
        return found


def load(source: Source, probe: str, clock: Clock, operators: dict[str, str], span: Span = EVER) -> Recorded:
    """Ask for the campaign's records; SourceError when the source cannot answer. They pass piece by piece into columns: of a campaign of
    weeks there are millions."""
    out = Recorded()

    def gathered(measurement: str, by: Sequence[str], fields: Sequence[str]) -> list[tuple[tuple[str, ...], _Columns]]:
        found: dict[tuple[str, ...], _Columns] = {}
        for piece in source.pieces(measurement, probe, span, fields):
            key = tuple(piece.tags.get(tag, "") for tag in by)
            if (mine := found.get(key)) is None:
                mine = found[key] = _Columns(fields)
            mine.add(clock.times(piece), piece)
        return sorted(found.items())

    boots: dict[str, float] = {}
    for (path,), polls in gathered("radio", ["path"], _OF_RADIO):
        operator = operators.get(path) or polls.tag("operator") or path
        out.radio[path] = RadioSeries(path, operator, polls.times, *(polls[name] for name in _OF_RADIO))
        for boot, t in polls.boots.items():
            boots[boot] = min(t, boots.get(boot, t))
    noticed = [
        (float(t), int(utc_ns), row)
        for piece in source.pieces("event", probe, span, _OF_EVENT)
        for t, utc_ns, row in zip(clock.times(piece), piece.utc_ns, piece.rows(), strict=True)
    ]
    out.events = [
        Event(
            t,
            row.get("kind", "unknown"),
            row.get("path"),
            row.get("operator") or operators.get(row.get("path", "")),
            number(row, "change_db"),
            row.get("detail"),
        )
        for t, _, row in sorted(noticed, key=lambda one: one[:2])
    ]
    out.starts = _starts([e.t_s for e in out.events if e.kind == "collector_start"], sorted(boots.values()))
    for (run, end, subflow), flow in gathered("subflow", ["run", "end", "subflow"], _OF_SUBFLOW):
        counts = flow["rcv_ooo_packets"]
        if end == "probe" and np.isfinite(counts).any():
            out.out_of_order[run] = out.out_of_order.get(run, 0) + int(np.nanmax(counts))
        own, values = flow.tag("path"), (flow.times, flow["goodput_bit_per_s"], flow["rtt_ms"])
        whose = flow.tag("operator") or operators.get(own or "")
        out.subflows.append(SubflowSeries(run, subflow, end, own, whose, *values))
    for (run, end), one in gathered("connection", ["run", "end"], _OF_CONNECTION):
        if end == "probe":
            out.connections[run] = one.times, one["goodput_bit_per_s"]
    out.round_trips = load_round_trips(source.pieces("round_trip", probe, span, FIELDS), clock, operators)
    return out


class _Column:
    """Numbers that come piece by piece. Beyond ``_HELD`` they lie in a file without a name, which is mapped: of a fleet's month of polls
    the kernel then keeps in memory what is looked at."""

    def __init__(self) -> None:
        self._held: list[Array] = [np.empty(0)]
        self._count = 0
        self._file: IO[bytes] | None = None

    def append(self, values: Array) -> None:
        """Some more."""
        self._held.append(values)
        self._count += len(values)
        if self._count >= _HELD:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            # Not /tmp, which may be memory itself.
            place = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None  # noqa: S108
            self._file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115  its mapping outlives it
        np.concatenate(self._held).tofile(self._file)
        self._held, self._count = [np.empty(0)], 0

    @cached_property
    def array(self) -> Array:
        """All of them; none is added any more."""
        if self._file is None:
            found, self._held = np.concatenate(self._held), []
            return found
        self._spill()
        self._file.flush()
        with self._file:
            return np.memmap(self._file, dtype=np.float64, mode="r")


class _Columns:
    """Records of one series as columns, in order of time once they are asked for."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._t_s = _Column()
        self._values = {name: _Column() for name in fields}
        self._tags: dict[str, tuple[float, str]] = {}
        self.boots: dict[str, float] = {}
        """By boot its first record's time."""

    def add(self, t_s: Array, piece: Piece) -> None:
        """Some more, at least one."""
        self._t_s.append(t_s)
        for name, values in self._values.items():
            values.append(piece.numbers(name))
        first = float(t_s.min())
        for name in ("path", "operator"):
            if name in piece.tags and (name not in self._tags or first < self._tags[name][0]):
                self._tags[name] = first, piece.tags[name]
        boot = piece.tags.get("boot", "")
        self.boots[boot] = min(first, self.boots.get(boot, first))

    def tag(self, name: str) -> str | None:
        """What the first record that has it tells."""
        return self._tags[name][1] if name in self._tags else None

    @cached_property
    def _order(self) -> NDArray[np.int64] | None:
        """None: they came in order, as most do."""
        came = self._t_s.array
        return None if bool(np.all(came[1:] >= came[:-1])) else np.argsort(came, kind="stable")

    @cached_property
    def times(self) -> Array:
        """In s since the campaign's start."""
        return self._ordered(self._t_s)

    def __getitem__(self, name: str) -> Array:
        return self._ordered(self._values[name])

    def _ordered(self, column: _Column) -> Array:
        came = column.array
        if self._order is None:
            return came
        ordered = _Column()
        for at in range(0, len(came), _HELD):
            ordered.append(came[self._order[at : at + _HELD]])
        return ordered.array


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
