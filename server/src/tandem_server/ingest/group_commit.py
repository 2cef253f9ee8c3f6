"""Lines of many requests in one write to the database: each request is answered only when its own lines are stored or named.

A write costs the database a sync and both ends their overhead; for a batch of twenty lines that is more than the lines. So a
request waits a moment for others, at most ``wait_s``, or while writes are under way; what then waits goes together, up to
``most_bytes``.

A group that the database refuses in part is halved down to the request that is to blame. The search for its bad lines is bounded, and is
that request's alone: one at a time beside the other writes, and what its probe sends next does not join others.

Hours that lines came late for are noted on the disk before their probe is answered. Lines come in thousands and hours few, so one that was
noted a moment ago is not noted again: what makes it again waits longer than that moment (``registry/backfill.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from tandem_server.http.body import Busy
from tandem_server.ingest.meter import Meter
from tandem_server.registry import NOTED_AGAIN_S, Hour, late_hours
from tandem_server.store import LinesRefused, Rejected, StoreDown, TooManyRefused

_ENOUGH_BYTES = 128 * 1024
"""Of these a write is mostly its lines: a backlog's batch does not wait for others."""

_MOST_REQUESTS = 128
"""In search of bad lines: enough for all of 64, whichever are bad."""

_ALONE_S = 60.0
"""So long after its last bad line a probe's batches go alone."""
_MOST_NOTED = 200_000


@dataclass(slots=True)
class _Waiting:
    lines: list[str]
    size: int
    answer: asyncio.Future[list[Rejected]]


class GroupCommit:
    """``write``: ``SeriesStore.write``, called from at most ``writers`` threads; ``meter`` counts each. All methods are the loop's."""

    def __init__(
        self,
        write: Callable[..., list[Rejected]],
        meter: Meter | None = None,
        *,
        wait_s: float = 0.01,
        most_bytes: int = 1 << 20,
        writers: int = 4,
    ) -> None:
        self._meter = Meter() if meter is None else meter
        self._write, self._wait_s, self._most_bytes, self._writers = write, wait_s, most_bytes, writers
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._writing: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._threads = ThreadPoolExecutor(writers + 1, thread_name_prefix="writer")
        self._alone_until_s: dict[str, float] = {}
        self._searched: set[str] = set()
        self._search = asyncio.Lock()

    async def store(self, probe: str, lines: list[str], size: int) -> list[Rejected]:
        """Those of ``lines`` (``size`` bytes together) that the database will never take; all others are in it. StoreDown, TooManyRefused
        (of fewer lines it would name them), Busy."""
        if not lines:
            return []
        if self._alone_until_s.get(probe, 0.0) > time.monotonic():
            return await self._store_alone(probe, lines)
        try:
            return await self._store_with_others(lines, size)
        except TooManyRefused:
            return await self._store_alone(probe, lines)

    async def _store_alone(self, probe: str, lines: list[str]) -> list[Rejected]:
        if probe in self._searched:
            raise Busy("the lines that the database refuses are looked for in another batch of this probe")
        self._searched.add(probe)
        refused = True
        try:
            async with self._search:
                rejected = await self._write_lines(lines, _MOST_REQUESTS)
            refused = bool(rejected)
            return rejected
        finally:
            self._searched.discard(probe)
            if refused:
                self._alone_until_s[probe] = time.monotonic() + _ALONE_S

    async def _store_with_others(self, lines: list[str], size: int) -> list[Rejected]:
        loop = asyncio.get_running_loop()
        mine = _Waiting(lines, size, loop.create_future())
        self._waiting.append(mine)
        self._waiting_bytes += size
        if self._waiting_bytes >= min(_ENOUGH_BYTES, self._most_bytes):
            self._begin()
        elif self._timer is None:
            self._timer = loop.call_later(self._wait_s, self._begin)
        return await mine.answer

    def _begin(self) -> None:
        """Start a write of what waits, unless enough are under way: then the first that ends does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting or len(self._writing) >= self._writers:
            return
        group = [self._take()]
        room = self._most_bytes - group[0].size
        while self._waiting and self._waiting[0].size <= room:
            group.append(self._take())
            room -= group[-1].size
        task = asyncio.get_running_loop().create_task(self._commit(group))
        self._writing.add(task)
        task.add_done_callback(self._ended)

    def _take(self) -> _Waiting:
        one = self._waiting.popleft()
        self._waiting_bytes -= one.size
        return one

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._writing.discard(task)
        self._begin()

    async def _commit(self, group: list[_Waiting]) -> None:
        try:
            rejected = await self._write_lines([line for one in group for line in one.lines], 1)
        except LinesRefused as error:
            # The database blames the lines without saying which. One request's must not cost the others'.
            if len(group) == 1:
                _fail(group, error)
                return
            middle = len(group) // 2
            await self._commit(group[:middle])
            await self._commit(group[middle:])
        except StoreDown as error:
            # Who waits behind would only find the same: they are answered at once, and come again.
            while self._waiting:
                group.append(self._take())
            _fail(group, error)
        except BaseException as error:
            _fail(group, error)
            raise
        else:
            _tell(group, rejected)

    async def _write_lines(self, lines: list[str], most_requests: int) -> list[Rejected]:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._metered, lines, most_requests)

    def _metered(self, lines: list[str], most_requests: int) -> list[Rejected]:
        began_s = time.perf_counter()
        try:
            rejected = self._write(lines, most_requests=most_requests)
        except TooManyRefused:
            raise  # the database works
        except StoreDown:
            self._meter.write_failed()
            raise
        self._meter.wrote(len(lines) - len(rejected), time.perf_counter() - began_s)
        return rejected


def _tell(group: list[_Waiting], rejected: list[Rejected]) -> None:
    """To each its own lines, numbered as it gave them."""
    first = 0
    named = sorted(rejected, key=lambda one: one.index)
    at = 0
    for one in group:
        end, mine = first + len(one.lines), []
        while at < len(named) and named[at].index < end:
            mine.append(Rejected(named[at].index - first, named[at].reason))
            at += 1
        if not one.answer.done():
            one.answer.set_result(mine)
        first = end


def _fail(group: list[_Waiting], error: BaseException) -> None:
    for one in group:
        if not one.answer.done():
            one.answer.set_exception(error)


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
        if len(self._noted) > _MOST_NOTED:
            self._noted = {hour: at for hour, at in self._noted.items() if now_s - at < self._again_s}
        self._noted.update(dict.fromkeys(hours, now_s))
