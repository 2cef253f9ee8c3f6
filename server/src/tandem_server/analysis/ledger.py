"""Records made against records stored: nothing may be lost silently."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    """Counts of records; None where nobody wrote it down. ``missing`` are ranges of record numbers, both ends included."""

    made: int | None
    sent: int | None
    pending: int | None
    rejected: int | None
    dropped: int | None
    in_database: int | None
    by_measurement: dict[str, int]
    missing: list[tuple[int, int]]
    lost: int | None


def ranges_missing(found: Iterable[int], last: int) -> list[tuple[int, int]]:
    """The gaps in 1 to ``last``, both ends included."""
    gaps: list[tuple[int, int]] = []
    expected = 1
    for n in sorted(set(found)):
        if n < expected:
            continue
        if n > last:
            break
        if n > expected:
            gaps.append((expected, n - 1))
        expected = n + 1
    if expected <= last:
        gaps.append((expected, last))
    return gaps


def account(
    made: int | None,
    sent: int | None,
    pending: int | None,
    rejected: int | None,
    dropped: int | None,
    found: dict[str, list[int]] | None,
) -> Account:
    """``found``: record numbers in the database by measurement, None when it could not be asked.

    ``lost`` are records made that are neither stored nor accounted for as rejected or dropped; those still waiting in the
    probe's spool count as lost here, since they did not arrive. None when the probe's own count or the database is missing.
    """
    if found is None:
        return Account(made, sent, pending, rejected, dropped, None, {}, [], None)
    numbers = {n for values in found.values() for n in values if n >= 1}
    last = max(max(numbers, default=0), made or 0)
    missing = ranges_missing(numbers, last)
    lost = None
    if made is not None:
        lost = max(0, last - len(numbers) - (rejected or 0) - (dropped or 0))
    counts = {name: len(set(values)) for name, values in found.items()}
    return Account(made, sent, pending, rejected, dropped, len(numbers), counts, missing, lost)
