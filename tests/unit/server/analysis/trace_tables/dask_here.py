"""A Dask cluster on this machine's loopback: a scheduler and its workers, each a process as on machines of their own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ENDS_WITHIN_S = 120


class Cluster:
    """``address`` as `dask scheduler` tells it. Workers have neither nanny nor dashboard: one that is killed stays dead."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self._log = (folder / "log").open("wb")
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.workers: list[subprocess.Popen[bytes]] = []
        until(lambda: self._file.exists() and self._file.read_text().endswith("}"), self.scheduler)
        self.address = json.loads(self._file.read_text())["address"]

    def grow(self, workers: int) -> None:
        """By so many, which the scheduler knows then."""
        from distributed import Client

        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--local-directory"]
        for _ in range(workers):
            own = self._folder / f"worker-{len(self.workers)}"
            self.workers.append(self._start("dask_worker", *words, str(own)))
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(self.alive(), timeout=ENDS_WITHIN_S)

    def alive(self) -> int:
        return sum(worker.poll() is None for worker in self.workers)

    def _start(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", str(self._file), *words]
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            command, cwd=self._folder, env={**os.environ, "PYTHONPATH": path}, stdout=self._log, stderr=self._log
        )

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self._log.close()


def until(done, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + ENDS_WITHIN_S
    while not done():
        assert process.poll() is None, "the process has ended"
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


@contextmanager
def started(folder: Path, workers: int) -> Iterator[Cluster]:
    folder.mkdir(exist_ok=True)
    cluster = Cluster(folder)
    try:
        if workers:
            cluster.grow(workers)
        yield cluster
    finally:
        cluster.end()
