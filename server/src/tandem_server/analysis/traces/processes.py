"""Batches on all processors, their results in order; what a process died of is tried again by itself."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait

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
    pool = _Pool(task, workers)
    begun = 0
    try:
        for turn in range(len(batches)):
            while turn not in pool.done and turn not in pool.lost:
                while begun < min(len(batches), turn + AHEAD * pool.workers) and pool.free():
                    pool.begin(begun, batches[begun])
                    begun += 1
                pool.wait()
            if turn in pool.lost:
                pool.drain()
                say(f"a process was killed, by lack of memory perhaps: its {len(batches[turn])} captures again, alone")
                result, together = _again(batches[turn], task)
                if together and pool.workers > 1:
                    pool.workers //= 2
                    say(f"at most {pool.workers} at once from here on; hint: --workers {pool.workers}")
                yield result
            else:
                yield pool.done.pop(turn)
    finally:
        pool.drain()


def _again(batch: list[str], task: Task) -> tuple[Analysed, bool]:
    """A batch's result from a process with no other beside it; False when it had to be taken apart."""
    try:
        return _alone(batch, task), True
    except LostError:
        pass
    return by_itself(batch, lambda path: _alone([path], task)), False


def by_itself(batch: Sequence[str], one: Callable[[str], Analysed]) -> Analysed:
    """Each file of a batch by itself: a part each. LostError is the end of that file only."""
    whole = Analysed()
    for path in batch:
        try:
            whole.add(one(path))
        except LostError:
            whole.failed.append((named(path), KILLED))
    return whole


def _alone(batch: list[str], task: Task) -> Analysed:
    worker = _Worker(task)
    try:
        worker.begin(batch)
        return worker.result()
    finally:
        worker.end()


class _Pool:
    """``done`` and ``lost``: by the batch's number. Processes are started when they are needed."""

    def __init__(self, task: Task, workers: int) -> None:
        self.workers = workers
        self.done: dict[int, Analysed] = {}
        self.lost: set[int] = set()
        self._task = task
        self._idle: list[_Worker] = []
        self._busy: dict[object, tuple[int, _Worker]] = {}

    def free(self) -> bool:
        return len(self._busy) < self.workers

    def begin(self, number: int, batch: list[str]) -> None:
        worker = self._idle.pop() if self._idle else _Worker(self._task)
        self._busy[worker.pipe] = number, worker
        worker.begin(batch)

    def wait(self) -> None:
        """Until at least one is done or lost."""
        for pipe in wait([worker.pipe for _, worker in self._busy.values()]):
            number, worker = self._busy.pop(pipe)
            try:
                self.done[number] = worker.result()
            except LostError:
                self.lost.add(number)
                worker.end()
            except BaseException:
                worker.end()
                raise
            else:
                self._idle.append(worker)

    def drain(self) -> None:
        """What was begun ends, and so do the processes."""
        try:
            while self._busy:
                self.wait()
        finally:
            for _, worker in self._busy.values():
                worker.end()
            for worker in self._idle:
                worker.end()
            self._busy.clear()
            self._idle.clear()


class _Worker:
    """One process, with a pipe of its own: what another one's death leaves half written is not in its way."""

    def __init__(self, task: Task) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, its = context.Pipe()
        self._process = context.Process(target=_serve, args=(its, task))
        self._process.start()
        its.close()

    def begin(self, batch: list[str]) -> None:
        """That the process has died meanwhile ``result`` tells."""
        with contextlib.suppress(OSError):
            self.pipe.send(batch)

    def result(self) -> Analysed:
        """LostError; else what the task gave or raised."""
        try:
            told = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise LostError from error
        if isinstance(told, MemoryError):
            raise LostError from told
        if isinstance(told, Exception):
            raise told
        given: Analysed = told
        return given

    def end(self) -> None:
        """When it has done what it was begun with."""
        self.pipe.close()
        self._process.join()


def _serve(pipe: Connection, task: Task) -> None:
    """Ctrl-C is the parent's, which lets batches that were begun end. When the parent is killed this process ends at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()
    while True:
        try:
            batch = pipe.recv()
        except EOFError:
            return
        told: Analysed | Exception
        try:
            told = task(batch)
        except Exception as error:  # noqa: BLE001  (it is raised in the process that asked)
            error.add_note(traceback.format_exc())
            told = error
        try:
            pipe.send(told)
        except OSError:  # nobody waits for it any more
            return


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
