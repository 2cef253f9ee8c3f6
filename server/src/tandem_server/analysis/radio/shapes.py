"""What the join takes and gives: events, subflows and bins as columns. Times are whole nanoseconds since the campaign's start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Radio:
    """Events of all modems. ``kind``: ``signal_drop`` or ``handover``; ``change_db`` NaN of a handover."""

    t_ns: Whole
    path: Sequence[str]
    kind: Sequence[str]
    change_db: Array


@dataclass(frozen=True, slots=True)
class Flows:
    """A row a subflow that is known to be a run's. ``connection``: the same number for subflows of one connection, also in several files.
    ``handshake_ms`` NaN where it was not seen; ``start_ns``, ``end_ns``: its first and last packet."""

    run: Sequence[str]
    kind: Sequence[str]
    path: Sequence[str]
    file: Sequence[str]
    subflow: Whole
    connection: Whole
    start_ns: Whole
    end_ns: Whole
    handshake_ms: Array
    rtt_method: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Binned:
    """The subflows' bins in the direction in which their connection's data went, in order of subflow and time. ``flow``: row in ``Flows``;
    ``place``: the bin ``[offset_ns + place · width_ns, + width_ns)``. A bin without a row had no packet. RTTs are NaN without samples."""

    width_ns: int
    offset_ns: int
    flow: Whole
    place: Whole
    goodput_bytes: Array
    rtt_mean_ms: Array
    rtt_max_ms: Array


class Rule(NamedTuple):
    """Under what the table was made."""

    gap_s: float
    factor: float


@dataclass(slots=True)
class Joined:
    """``rows``: columns by name, as ``columns.COLUMNS`` says. ``account``: what was joined, left out and could not be joined."""

    rule: Rule
    rows: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    account: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.rows.values()), ()))
