"""Which level a radio record tells, of which cell; how much the levels of one modem spread."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

from tandem.schema.record import Record

FAMILIES = {"NR-NSA": "LTE", "CAT-M": "LTE", "NB-IOT": "LTE"}
"""On NR-NSA the plain quantities are the LTE anchor's, so a secondary cell that comes and goes changes nothing."""

LEVELS = ("rsrp_dbm", "rscp_dbm", "rssi_dbm")
"""What stands for the level, the first that is there: pilots first, since RSSI goes with the load of the cell too."""

FEWEST_POLLS = 4
FEWEST_FREE = 3
LEAST_SPREAD_DB = 0.3
"""A value that always rounds to the same whole dB spreads by 1/sqrt(12) dB for all we know."""


def family(rat: str | None) -> str | None:
    """Radio technologies whose levels may be compared have the same one."""
    return FAMILIES.get(rat, rat) if rat is not None else None


def level_of(record: Record) -> tuple[str, float] | None:
    """(quantity, dBm); None when the poll found none."""
    for quantity in LEVELS:
        level = record.fields.get(quantity)
        if isinstance(level, (int, float)) and not isinstance(level, bool):
            return quantity, float(level)
    return None


def cell_of(record: Record) -> Hashable | None:
    """The serving cell by the best identity that the poll has; None when it has none."""
    kind, fields = family(record.tags.get("rat")), record.fields
    if "eci" in fields:
        return kind, "eci", fields["eci"]
    if "ci" in fields:
        return kind, "ci", fields.get("lac"), fields["ci"]
    if "pci" in fields:
        return kind, "pci", fields.get("earfcn"), fields["pci"]
    return None


class Spread:
    """The standard deviation of one modem's levels in a window that ends now, every cell's about its own mean.

    Levels of different cells, technologies or quantities are not compared: a modem that stands still between two cells changes
    its level with every change of cell. Sums are whole numbers of thousandths of a dB, so nothing drifts.
    """

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._polls: deque[tuple[int, Hashable, int]] = deque()
        self._sums: dict[Hashable, tuple[int, int, int]] = {}

    def feed(self, monotonic_ns: int, group: Hashable, level_db: float) -> float | None:
        """In dB; None while too few polls tell. Times must not decrease."""
        polls, level = self._polls, round(level_db * 1000)
        polls.append((monotonic_ns, group, level))
        self._count(group, 1, level)
        while polls[0][0] <= monotonic_ns - self._window_ns:
            _, old, gone = polls.popleft()
            self._count(old, -1, gone)
        free = len(polls) - len(self._sums)
        if len(polls) < FEWEST_POLLS or free < FEWEST_FREE:
            return None
        about_means = sum((number * squares - total * total) / number for number, total, squares in self._sums.values())
        return max(LEAST_SPREAD_DB, math.sqrt(about_means / free) / 1000)

    def _count(self, group: Hashable, more: int, level: int) -> None:
        number, total, squares = self._sums.get(group, (0, 0, 0))
        if number + more:
            self._sums[group] = number + more, total + more * level, squares + more * level * level
        else:
            del self._sums[group]
