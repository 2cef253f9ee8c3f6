"""What runs beside the gateway with the least priority, each in a process of its own, so that what it computes does not stand in the way
of records that come in: ``python -m tandem_server.cli.background derived|tables CONFIG``."""

from __future__ import annotations

import functools
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tandem.stop_flag import StopFlag
from tandem_server.cli.command import EnvironmentLacks, need_native_pass, run_plainly
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stores import LONG_STATEMENT_S, TraceStores, open_influx, open_registry
from tandem_server.registry import Debounce, Registry
from tandem_server.store import Influx, QueryError, StoreDown
from tandem_server.uploads.store import TraceStoreDown

if TYPE_CHECKING:
    from tandem_server.derived.tables import Pool, Tabling

_LOG = logging.getLogger("tandem.tables")
_SERVE_LOG = logging.getLogger("tandem.serve")
NICE = 19
_AFTER_S = 10.0
"""So long the gateway has for itself at first; and between a process that died and the next."""
_STOP_S = 15.0
_PERIOD_S = 60.0

Role = Literal["derived", "tables"]


class Beside:
    """A context: while it is open there is a process of this role, from ``after_s`` on; one that died is started again; one that ended
    well had nothing to do here, and said why."""

    def __init__(self, role: Role, config: Path, after_s: float = _AFTER_S) -> None:
        self._role, self._config, self._after_s = role, config, after_s
        self._end = threading.Event()
        # The kernel ends nothing with this thread: the process watches its standard input.
        self._thread = threading.Thread(target=self._keep, name=role, daemon=True)

    def __enter__(self) -> Beside:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _keep(self) -> None:
        command = [sys.executable, "-m", "tandem_server.cli.background", self._role, str(self._config)]
        while not self._end.wait(self._after_s):
            with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
                while not self._end.is_set() and process.poll() is None:
                    self._end.wait(1.0)
                if self._end.is_set():
                    process.terminate()
                    try:
                        process.wait(_STOP_S)
                    except subprocess.TimeoutExpired:
                        process.kill()
                    return
            if process.returncode == 0:
                return
            _SERVE_LOG.warning("%s ended (status %d); another is started", self._role, process.returncode)


def end_with_parent() -> None:
    """End as by SIGTERM when the process that started this one is gone: it holds the other end of our standard input."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _derived(config: ServerConfig) -> int:
    """Make derived series until SIGTERM, or until the gateway is gone."""
    from tandem_server.derived.series import DerivedSeries

    stop = StopFlag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    end_with_parent()
    store = open_influx(config).patient(LONG_STATEMENT_S)
    with open_registry(config) as registry, DerivedSeries(registry, store, Debounce(config.series.settle_s)):
        stop.wait()
    return 0


def _tables(config: ServerConfig) -> int:
    """Analyse captures when they come, until SIGTERM, which ends it in the midst of whatever it does, or until the gateway is gone."""
    end_with_parent()
    store = open_influx(config).patient(LONG_STATEMENT_S)
    with open_registry(config) as registry:
        try:
            own = tabling(config, registry, process_pool(config.traces.analyse_workers), store)
        except EnvironmentLacks as error:
            _LOG.warning("captures are not analysed when they come: %s", error)
            return 0
        logged = ""
        while True:
            try:
                own.turn(time.time_ns())
                logged = ""
            except (OSError, ValueError, TraceStoreDown, StoreDown, QueryError, sqlite3.Error) as error:
                if str(error) != logged:  # a full disk is logged once, not each minute
                    _LOG.warning("captures are not analysed this time: %s", error)
                logged = str(error)
            time.sleep(_PERIOD_S)


def tabling(config: ServerConfig, registry: Registry, pool: Pool, store: Influx) -> Tabling:
    """What analyses this server's captures; EnvironmentLacks without the native pass. ``store``: for the boards' points, which begin with
    the radio's events."""
    need_native_pass()
    from tandem_server.derived.run_traces import RunTraces
    from tandem_server.derived.tables import Tabling

    traces, tell = config.traces, RunTraces(registry, store).tell
    return Tabling(registry, traces.folder, TraceStores(config).at, pool, traces.reserve_bytes, tell)


def process_pool(workers: int) -> Pool:
    """Each capture in a process of its own: one that is killed takes nothing with it."""
    from tandem_server.analysis.traces import processes

    return functools.partial(processes.analysed, workers=workers, apart=True, say=_LOG.warning)


_ROLES: dict[str, Callable[[ServerConfig], int]] = {"derived": _derived, "tables": _tables}


def main(role: str, file: Path) -> int:
    """Run the role; the exit status."""
    config = load(file)
    log_to_stderr()
    os.nice(NICE)
    return _ROLES[role](config)


if __name__ == "__main__":
    sys.exit(run_plainly(lambda: main(sys.argv[1], Path(sys.argv[2]))))
