"""Batches on all processors, their results in order; what a process died of is tried again by itself."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.connection import wait
from typing import Any

from tandem_server.analysis.traces.batch import Analysed
from tandem_server.analysis.traces.manifest import named

Task = Callable[[Sequence[str]], Analysed]
"""``batch.process_batch`` with its settings: something that can be pickled."""
AHEAD = 2
"""Batches for each process that are begun before the first of them is told: so what waits for its turn is bounded."""
KILLED = "the process that analysed it was killed, also with no other beside it; hint: more memory, or leave it out"


class LostError(RuntimeError):
    """The process ended without a result: killed by a signal, or out of memory."""


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def in_order(
    batches: Sequence[list[str]],
    workers: Callable[[], int],
    submit: Callable[[list[str]], Any],
    result: Callable[[list[str], Any], Analysed],
) -> Iterator[Analysed]:
    """Each batch's result. ``submit`` gives a future, of which ``result`` makes what is told; those that nobody asks for are cancelled."""
    waiting: deque[tuple[list[str], Any]] = deque()
    left = iter(batches)
    try:
        while True:
            more = islice(left, max(0, AHEAD * workers() - len(waiting)))
            waiting.extend((batch, submit(batch)) for batch in more)
            if not waiting:
                return
            yield result(*waiting.popleft())
    finally:
        for _, future in waiting:
            future.cancel()


def analysed(
    batches: Sequence[list[str]], task: Task, workers: int, *, apart: bool = True, say: Callable[[str], None]
) -> Iterator[Analysed]:
    """Each batch's result, in order. What the task raises (OSError: a part cannot be written) is raised here.

    A batch whose process is killed is done again with no other beside it, and then each of its files by itself: what is killed then has
    failed. Where being alone was enough, half as many go on. ``say`` is told so. Not ``apart``: in this process.
    """
    if not apart:
        yield from map(task, batches)
        return
    processes = _Processes(task, workers)

    def result(batch: list[str], future: Future[Analysed]) -> Analysed:
        try:
            return future.result()
        except LostError:
            processes.end()
        say(f"a process was killed, by lack of memory perhaps: its {len(batch)} captures again, alone")
        try:
            told = processes.one(batch)
        except LostError:
            return by_itself(batch, lambda path: processes.one([path]))
        if processes.most > 1:
            processes.most //= 2
            say(f"at most {processes.most} at once from here on; hint: --workers {processes.most}")
        return told

    try:
        yield from in_order(batches, lambda: processes.most, processes.submit, result)
    finally:
        processes.end()


def by_itself(batch: Sequence[str], one: Callable[[str], Analysed]) -> Analysed:
    """Each file of a batch by itself: a part each. LostError is the end of that file only."""
    whole = Analysed()
    for path in batch:
        try:
            whole.add(one(path))
        except LostError:
            whole.failed.append((named(path), KILLED))
    return whole


class _Processes:
    """``most`` at once, each begun when it is needed and a pool of its own, so that another one's death is not in its way; each has a
    thread here that waits for it."""

    def __init__(self, task: Task, most: int) -> None:
        self.most = most
        self._task = task
        self._threads: ThreadPoolExecutor | None = None
        self._idle: deque[ProcessPoolExecutor] = deque()

    def submit(self, batch: list[str]) -> Future[Analysed]:
        """As ``one``, when its turn comes."""
        self._threads = self._threads or ThreadPoolExecutor(self.most)
        return self._threads.submit(self.one, batch)

    def one(self, batch: list[str]) -> Analysed:
        """LostError; else what the task gives or raises."""
        try:
            process = self._idle.pop()
        except IndexError:
            process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begun)
        try:
            told = process.submit(self._task, batch).result()
        except (BrokenProcessPool, MemoryError) as error:
            process.shutdown()
            raise LostError from error
        except BaseException:
            process.shutdown()
            raise
        self._idle.append(process)
        return told

    def end(self) -> None:
        """What was begun ends, and so do the processes."""
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
        while self._idle:
            self._idle.pop().shutdown()


def _begun() -> None:
    """Ctrl-C is the parent's, which lets batches that were begun end. When the parent is killed this process ends at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
