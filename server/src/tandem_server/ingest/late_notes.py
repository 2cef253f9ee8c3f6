"""Which hours lines came late for, noted on the disk before their probe is answered: what boards are made of is to be made again for them.

A roll-up by a continuous query sees what the database has when it runs, and never looks back. So whatever comes later than it surely still
looks is noted: probe, measurement and hour. Lines come in thousands and hours few, so one that was noted a moment ago is not noted again:
what makes it again waits longer than that moment (``registry/backfill.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from starlette.concurrency import run_in_threadpool

from tandem_server.registry import CONSUMERS, NOTED_AGAIN_S, Hour

LATE_S = 120
"""Lines older than this when the database has them are late. Continuous queries look back for longer (store/rollup_queries.py)."""

_MADE_OF = frozenset().union(*CONSUMERS.values())
_DIGITS, _COARSE = 19, 11
"""Times are the last 19 digits of a line (2001 to 2286). Without the last 11 of them they are blocks of 100 s, 36 to the hour."""
_BLOCK_S, _HOUR_S = 100, 3600
_MOST = 200_000


def late_hours(probe: str, lines: Iterable[str], now_utc_ns: int) -> set[Hour]:
    """The hours of those of ``lines``, stored just now, that are late. Lines end in their time in ns."""
    bound = str(now_utc_ns - LATE_S * 10**9)
    late = [line for line in lines if line[-_DIGITS:] < bound]
    if not late:
        return set()
    blocks = {(line[: line.index(",")], line[-_DIGITS:-_COARSE]) for line in late}
    return {
        (probe, measurement, int(block) * _BLOCK_S // _HOUR_S * _HOUR_S)
        for measurement, block in blocks
        if measurement in _MADE_OF
    }


class LateNotes:
    """``write``: ``BackfillQueue.note``. An hour noted less than ``again_s`` ago, half of what notes ripen, is not noted again. Notes of
    requests that come at once go to the disk together. All methods are the event loop's."""

    def __init__(self, write: Callable[[set[Hour], int], None], again_s: float = NOTED_AGAIN_S) -> None:
        self._write, self._again_s = write, again_s
        self._noted: dict[Hour, float] = {}
        self._waiting: set[Hour] = set()
        self._next: asyncio.Task[None] | None = None
        self._under_way: asyncio.Task[None] | None = None

    async def note(self, probe: str, lines: Iterable[str]) -> None:
        """``lines`` of ``probe`` are in the database: on return the hours of those that are late are on the disk. sqlite3.Error."""
        hours = late_hours(probe, lines, time.time_ns())
        if not hours:
            return
        now_s = time.monotonic()
        new = {hour for hour in hours if now_s - self._noted.get(hour, -self._again_s) >= self._again_s}
        if not new:
            return
        self._waiting |= new
        if self._next is None:
            self._next = asyncio.create_task(self._keep(self._under_way))
        await asyncio.shield(self._next)

    async def _keep(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        hours, self._waiting = self._waiting, set()
        self._under_way, self._next = self._next, None
        # From before the note is made: what comes meanwhile must not count as noted longer than it is.
        now_s = time.monotonic()
        await run_in_threadpool(self._write, hours, time.time_ns())
        if len(self._noted) > _MOST:
            self._noted = {hour: at for hour, at in self._noted.items() if now_s - at < self._again_s}
        self._noted.update(dict.fromkeys(hours, now_s))
