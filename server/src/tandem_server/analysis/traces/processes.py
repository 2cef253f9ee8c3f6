"""Batches on all processors, their results in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path

from tandem_server.analysis.traces.batch import Analysed, process_batch


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def analysed(
    batches: Sequence[list[str]], bin_ns: int, packets: bool, out: Path | None, workers: int
) -> Iterator[Analysed]:
    """Each batch's result, in order. With one worker, or one batch, in this process.

    BrokenProcessPool: a process was killed. OSError: a part cannot be written. What waits for its turn is bounded.
    """
    workers = min(workers, len(batches))
    if workers <= 1:
        for batch in batches:
            yield process_batch(batch, bin_ns, packets, out)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin)
    waiting: deque[Future[Analysed]] = deque()
    try:
        for batch in batches:
            waiting.append(pool.submit(process_batch, batch, bin_ns, packets, out))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Ctrl-C is the parent's, which lets batches that were begun end. A process of a pool would wait for ever when its parent is killed,
    since it holds both ends of its queue: so it watches it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
