"""What one row counts. Sums do not depend on the order in which they were made: whole numbers, and floats by their exact sum. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tandem.schema.metrics import AREA, COVERAGE, PAIR_DAY
from tandem.schema.metrics.coverage import (
    GOODPUT_BINS,
    GOODPUT_EDGES_MBIT_PER_S,
    GOODPUT_NONE,
    RSRP_BINS,
    RSRP_EDGES_DBM,
    WEAK_DBM,
)
from tandem.schema.record import Value

_FLOATS = frozenset(f.name for f in (*COVERAGE.fields, *PAIR_DAY.fields) if f.kind == "float")
_GOODPUT_EDGES = tuple(edge * 1e6 for edge in GOODPUT_EDGES_MBIT_PER_S)
_LOOKED_FOR = {
    "polls": ("polls_unserved", "handovers"),
    "rsrp_dbm_count": ("rsrp_weak_count",),
    "way_time_s": ("way_m", "way_handovers"),
    "goodput_bit_per_s_count": ("goodput_bit_per_s_sum",),
}
_OF_PAIR = frozenset(f.name for f in PAIR_DAY.fields)
_OF_AREA = frozenset(f.name for f in AREA.fields)


@dataclass(slots=True)
class Counts:
    """One row while it is counted. Times in ns, ways in m."""

    time_ns: int = 0
    way_time_ns: int = 0
    rsrp_dbm: list[float] = field(default_factory=list)
    goodput_bit_per_s: list[float] = field(default_factory=list)
    way_m: list[float] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def fields(self) -> dict[str, Value]:
        """As ``tandem.schema.metrics.COVERAGE`` has them. What was looked for and not found is 0; what was not looked for, and a bin
        without a count, is left out."""
        bins = Counter(RSRP_BINS[bisect_right(RSRP_EDGES_DBM, value)] for value in self.rsrp_dbm)
        bins.update(map(_goodput_bin, self.goodput_bit_per_s))
        figures: dict[str, Value] = {
            **self.counted,
            **bins,
            "time_s": self.time_ns / 1e9,
            "rsrp_dbm_count": len(self.rsrp_dbm),
            "rsrp_dbm_sum": math.fsum(self.rsrp_dbm),
            "rsrp_weak_count": sum(value < WEAK_DBM for value in self.rsrp_dbm),
            "goodput_bit_per_s_count": len(self.goodput_bit_per_s),
            "goodput_bit_per_s_sum": math.fsum(self.goodput_bit_per_s),
            "way_time_s": self.way_time_ns / 1e9,
            "way_m": math.fsum(self.way_m),
        }
        zeros = {
            name: figures.get(name) or 0
            for looked, names in _LOOKED_FOR.items()
            if figures.get(looked)
            for name in names
        }
        return {name: value for name, value in figures.items() if value} | zeros


def _goodput_bin(value: float) -> str:
    return GOODPUT_NONE if value <= 0 else GOODPUT_BINS[1:][bisect_right(_GOODPUT_EDGES, value)]


def added(rows: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Rows of ``COVERAGE``, or of ``PAIR_DAY``, added up, field for field."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int | float):
                values.setdefault(name, []).append(value)
    return {name: math.fsum(some) if name in _FLOATS else sum(map(int, some)) for name, some in sorted(values.items())}


def of_pair(row: Mapping[str, Value]) -> dict[str, Value]:
    """A pair as ``PAIR_DAY`` adds it up."""
    return {name: value for name, value in row.items() if name in _OF_PAIR}


def of_area(row: Mapping[str, Value]) -> dict[str, Value]:
    """A row of ``COVERAGE`` as ``AREA`` has it."""
    return {name: value for name, value in row.items() if name in _OF_AREA}
