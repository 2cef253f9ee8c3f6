"""Rows of one kind joined to rows of another by time: a radio record to the position nearest to it. Pure, standard library only.

Nothing is interpolated: between two positions there may be what was not to be told (a home zone), and what was not measured.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WITHIN_NS = 1_000_000_000


def nearest(
    times_ns: Sequence[int], rows_ns: Sequence[int], rows: Sequence[T], within_ns: int = WITHIN_NS
) -> list[T | None]:
    """For each of ``times_ns`` the row nearest in time, the earlier of two; None when none is within ``within_ns`` (inclusive).

    ``rows_ns[i]`` is the time of ``rows[i]``. Any order; all times of one clock: UTC, or CLOCK_MONOTONIC of one boot.
    """
    if len(rows_ns) != len(rows):
        raise ValueError(f"{len(rows_ns)} times for {len(rows)} rows")
    order = sorted(range(len(rows)), key=rows_ns.__getitem__)
    sorted_ns = [rows_ns[i] for i in order]
    found: list[T | None] = []
    for time_ns in times_ns:
        after = bisect_left(sorted_ns, time_ns)
        best: int | None = None
        for place in (after - 1, after):
            if 0 <= place < len(sorted_ns):
                apart = abs(sorted_ns[place] - time_ns)
                if apart <= within_ns and (best is None or apart < abs(sorted_ns[best] - time_ns)):
                    best = place
        found.append(None if best is None else rows[order[best]])
    return found
