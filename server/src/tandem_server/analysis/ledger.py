"""Records made against records stored: nothing may be lost silently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tandem_server.ledger.numbers import Numbers, ranges_missing


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


def account(
    made: int | None,
    sent: int | None,
    pending: int | None,
    rejected: int | None,
    dropped: int | None,
    found: Mapping[str, Numbers] | None,
) -> Account:
    """``found``: record numbers in the database by measurement, None when it could not be asked.

    ``lost`` are records made that are neither stored nor accounted for as rejected or dropped; those still waiting in the
    probe's spool count as lost here, since they did not arrive. None when the probe's own count or the database is missing.
    """
    if found is None:
        return Account(made, sent, pending, rejected, dropped, None, {}, [], None)
    numbers = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found.values()]))
    numbers = numbers[numbers >= 1]
    last = max(int(numbers.max(initial=0)), made or 0)
    missing = list(ranges_missing(numbers, 1, last))
    lost = None
    if made is not None:
        lost = max(0, last - len(numbers) - (rejected or 0) - (dropped or 0))
    counts = {name: len(np.unique(values)) for name, values in found.items()}
    return Account(made, sent, pending, rejected, dropped, len(numbers), counts, missing, lost)
