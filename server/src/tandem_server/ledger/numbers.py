"""The numbers of a spool's records: which arrived, which did not, and what became of the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem_server.ledger.states import SpoolReport
from tandem_server.registry import CountedNumbers

Ranges = tuple[tuple[int, int], ...]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BootCount:
    """The numbered records of one boot in the database: how many, the lowest and the highest number."""

    count: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class SpoolAccount:
    """Of one spool. ``made`` = ``arrived`` + ``rejected`` + ``dropped`` + ``waiting`` + ``unexplained`` + ``expired``, but for records that
    arrived although the probe counts them as rejected or dropped (an answer was lost).

    ``spool`` None: boots whose spool reported nothing; then only ``arrived`` is known. ``through``: the number up to which all is settled,
    ``missing``: the ranges up to there that did not arrive. ``twice``: numbers at two times. ``told_utc_ns``: of the newest report.
    """

    probe: str
    spool: str | None
    boots: int
    first: int | None
    made: int | None
    arrived: int
    rejected: int | None
    dropped: int | None
    waiting: int | None
    unexplained: int | None
    expired: int
    twice: int
    through: int | None
    missing: Ranges
    told_utc_ns: int | None
    oldest_s: float | None
    current: bool

    def lacks(self, now_utc_ns: int, unsent_after_s: float) -> bool:
        """Whether something is missing for good, or waits longer than a probe that is well lets it wait."""
        if self.rejected or self.dropped or self.unexplained or self.twice:
            return True
        if not self.waiting or self.told_utc_ns is None:
            return False
        return now_utc_ns - self.told_utc_ns + (self.oldest_s or 0.0) * 1e9 > unsent_after_s * 1e9

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it (tandem-ledger/1)."""
        fields = asdict(self)
        return {**fields, "settled": fields.pop("through"), "missing": [list(pair) for pair in self.missing]}


class Found:
    """Which numbers there are, as ranges: numbers have few gaps, so a spool of any length takes little. ``counted``: with repetitions."""

    def __init__(self) -> None:
        self._starts, self._ends = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.counted = 0

    def add(self, numbers: Numbers) -> None:
        """More of them, in any order, also some that are there already."""
        self.counted += len(numbers)
        there = np.unique(numbers)
        breaks = np.flatnonzero(np.diff(there) > 1)  # as ranges first: those of a month are millions
        low, high = there[np.append(0, breaks + 1)[: len(there)]], there[np.append(breaks, -1)[: len(there)]]
        starts, ends = np.concatenate((self._starts, low)), np.concatenate((self._ends, high))
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], np.maximum.accumulate(ends[order])
        begins = np.append(True, starts[1:] > ends[:-1] + 1)[: len(starts)]
        self._starts, self._ends = starts[begins], ends[np.append(begins[1:], True)[: len(ends)]]

    def __len__(self) -> int:
        return int((self._ends - self._starts + 1).sum())

    @property
    def lowest(self) -> int | None:
        """None of none."""
        return int(self._starts[0]) if len(self._starts) else None

    def missing(self, first: int, last: int) -> Ranges:
        """The gaps in ``first`` to ``last``, both ends included."""
        low = np.maximum(np.append(first, self._ends + 1), first)
        high = np.minimum(np.append(self._starts - 1, last), last)
        return tuple((int(a), int(b)) for a, b in zip(low, high, strict=True) if a <= b)


def how_many(ranges: Ranges) -> int:
    """Numbers in them."""
    return sum(b - a + 1 for a, b in ranges)


def sum_of(above: int, through: int) -> int:
    """Of the numbers ``above`` + 1 to ``through``: with their count it shows that none is missing and none there twice."""
    return (through * (through + 1) - above * (above + 1)) // 2


def spools_of(boots: Mapping[str, BootCount], reports: Mapping[str, SpoolReport]) -> dict[str | None, list[str]]:
    """Boots by spool. A boot is its report's; one without belongs where its numbers fit between the others', if that is one place."""
    out: dict[str | None, list[str]] = {}
    for boot, report in reports.items():
        out.setdefault(report.spool, []).append(boot)
    reported = {spool: list(of) for spool, of in out.items()}
    for boot, count in boots.items():
        if boot in reports:
            continue
        fits = [
            spool
            for spool, of in reported.items()
            if _fits(count, [boots[b] for b in of if b in boots], spool, reports)
        ]
        out.setdefault(fits[0] if len(fits) == 1 else None, []).append(boot)
    return out


def _fits(count: BootCount, others: Sequence[BootCount], spool: str | None, reports: Mapping[str, SpoolReport]) -> bool:
    first = min(r.first for r in reports.values() if r.spool == spool)
    return count.low >= first and all(count.high < o.low or count.low > o.high for o in others)


def account_of(
    report: SpoolReport, counted: CountedNumbers, boots: int, highest: int, arrived_above: int, *, current: bool
) -> SpoolAccount:
    """The account from what is counted up to ``counted.through`` and the ``arrived_above`` it, of numbers up to ``highest``."""
    made = max(report.made, highest)
    gone = report.rejected + report.dropped
    missing = how_many(counted.missing)
    beyond = max(0, gone - missing)  # rejected or dropped ahead of what is settled
    return SpoolAccount(
        report.probe,
        report.spool,
        boots,
        report.first,
        made - report.first + 1,
        counted.arrived + arrived_above,
        report.rejected,
        report.dropped,
        max(0, made - counted.through - arrived_above - beyond),
        max(0, missing - gone),
        counted.expired,
        counted.twice,
        counted.through,
        counted.missing,
        report.utc_ns,
        report.oldest_s,
        current,
    )


def account_unreported(probe: str, boots: Sequence[BootCount]) -> SpoolAccount:
    """Of boots whose spool reported nothing."""
    arrived = sum(boot.count for boot in boots)
    return SpoolAccount(
        probe, None, len(boots), None, None, arrived, None, None, None, None, 0, 0, None, (), None, None, False
    )
