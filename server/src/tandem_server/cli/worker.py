"""``tandem-server serve worker``: what is made of what the gateway stored, in a process of its own, so that it does not stand in the way of
records that come in. One for a registry; systemd supervises it.

Roll-ups and the server's own series, which alarms rest on, at once; derived series and captures with the least priority.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.notify import Notify
from tandem.stop_flag import StopFlag
from tandem_server.cli.command import EnvironmentLacks, need_native_pass
from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.stores import (
    DATABASE_WAIT_S,
    LONG_STATEMENT_S,
    TraceStores,
    kept_days,
    open_influx,
    open_registry,
    open_store,
    upload_service,
)
from tandem_server.derived.own_series import ExpectedSeries, LedgerSeries, MachineSeries
from tandem_server.derived.rollups import RollingSeries
from tandem_server.derived.run_samples import RunSampling
from tandem_server.derived.series import DerivedSeries
from tandem_server.periodic import Periodic
from tandem_server.registry import Debounce, Registry
from tandem_server.store import Influx
from tandem_server.uploads.service import UploadService
from tandem_server.uploads.store import TraceStoreDown

if TYPE_CHECKING:  # the native pass, which may not be built
    from tandem_server.derived.tables import Pool, Tabling

_LOG = logging.getLogger("tandem.worker")
_STOP_S = 5.0
_SWEEP_S = 600.0
_CAPTURES_S = 60.0


def serve(config: ServerConfig) -> None:
    """Work until SIGTERM or SIGINT. EnvironmentLacks where another worker has this registry."""
    stop, notify = StopFlag(), Notify.of_environment()
    with ExitStack() as held:
        registry = held.enter_context(open_registry(config))
        if not held.enter_context(registry.locked("worker")):
            raise EnvironmentLacks(f"{registry.file}: another worker has it; hint: one tandem-server serve worker")
        tasks = list(_tasks(config, registry))
        for number in (signal.SIGTERM, signal.SIGINT):  # until here each of them ends it at once
            signal.signal(number, lambda *_: stop.set())
        for one in tasks:
            held.enter_context(one)
        print(f"ready worker {', '.join(one.name for one in tasks)}", flush=True)
        notify.ready()
        while not stop.wait(0.5):
            notify.alive()
        notify.stopping()
        for one in tasks:
            one.end()
        until_s = time.monotonic() + _STOP_S
        for one in tasks:
            one.join(max(0.0, until_s - time.monotonic()))
        # A capture, or a statement, may be under way for minutes. What ends before its end is made again, and processes end with this one.
        logging.shutdown()
        os._exit(0)


def _tasks(config: ServerConfig, registry: Registry) -> Iterator[Periodic]:
    store = open_store(config, DATABASE_WAIT_S)
    long = open_influx(config).patient(LONG_STATEMENT_S)
    every_s, settle_s = config.series.every_s, config.series.settle_s
    yield ExpectedSeries(registry, store, config.states, every_s)
    yield LedgerSeries(registry, store, config.store.retention_days, every_s)
    yield MachineSeries(registry, store, places_of(config), every_s)
    yield RollingSeries(registry, long, kept_days(config), settle_s)
    yield UnfinishedUploads(upload_service(config, registry))
    yield DerivedSeries(registry, long, Debounce(settle_s))
    yield RunSampling(registry, long, config.traces.folder, config.traces.reserve_bytes)
    if config.traces.analyse:
        try:
            pool = process_pool(config.traces.analyse_workers)
            yield CaptureTables(tabling(config, registry, pool, long))
        except EnvironmentLacks as error:
            _LOG.warning("captures are not analysed when they come: %s", error)


def places_of(config: ServerConfig) -> dict[str, Path]:
    """What of the server's is on this machine, by its name in the schema's SERVER_PLACES; some of it may not exist."""
    places = {
        "traces": config.traces.folder,
        "registry": config.registry.file,
        "results": config.results.folder,
        "content": config.content.folder,
    }
    if config.store.kind == "private":
        places["store"] = config.store.folder
    if config.capture.allowed:
        places["captures"] = config.capture.folder
    return places


class UnfinishedUploads(Periodic):
    """Gives up unfinished traces, now and every ten minutes."""

    def __init__(self, service: UploadService) -> None:
        super().__init__("unfinished traces", _SWEEP_S)
        self._service = service

    def turn(self) -> None:
        """See ``UploadService.sweep``."""
        self._service.sweep()


class CaptureTables(Periodic):
    """Analyses captures when they have come."""

    nice = 19
    expected = (*Periodic.expected, ValueError, TraceStoreDown)

    def __init__(self, tabling: Tabling) -> None:
        super().__init__("captures", _CAPTURES_S)
        self._tabling = tabling

    def turn(self) -> None:
        """See ``Tabling.turn``."""
        self._tabling.turn(time.time_ns())


def tabling(config: ServerConfig, registry: Registry, pool: Pool, store: Influx) -> Tabling:
    """What analyses this server's captures; EnvironmentLacks without the native pass. ``store``: for the boards' points, which begin with
    the radio's events."""
    need_native_pass()
    from tandem_server.derived.run_traces import RunTraces
    from tandem_server.derived.tables import Tabling

    traces, tell = config.traces, RunTraces(registry, store).tell
    return Tabling(registry, traces.folder, TraceStores(config).at, pool, traces.reserve_bytes, tell)


def process_pool(workers: int) -> Pool:
    """Each capture in a process of its own: one that is killed takes nothing with it. EnvironmentLacks without the native pass."""
    need_native_pass()
    from tandem_server.analysis.traces import processes

    return functools.partial(processes.analysed, workers=workers, apart=True, say=_LOG.warning)
