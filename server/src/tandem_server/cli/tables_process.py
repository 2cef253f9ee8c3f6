"""The process that analyses captures when they come, beside the gateway: ``python -m tandem_server.cli.tables_process CONFIG``."""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sqlite3
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tandem_server.cli.analyse import need_native_pass
from tandem_server.cli.beside import NICE
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.gateway_pool import end_with_parent
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stop import EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry, open_rolled
from tandem_server.cli.trace_stores import Stores
from tandem_server.registry import Registry
from tandem_server.store import Influx, QueryError, StoreDown
from tandem_server.uploads.store import TraceStoreDown

if TYPE_CHECKING:
    from tandem_server.derived.tables import Pool, Tabling

_LOG = logging.getLogger("tandem.tables")
_PERIOD_S = 60.0


def tabling(config: ServerConfig, registry: Registry, pool: Pool, store: Influx | None) -> Tabling:
    """What analyses this server's captures; EnvironmentLacks without the native pass. ``store``: for the boards' points, which
    begin with the radio's events; None where it cannot be asked for them."""
    need_native_pass()
    tables = importlib.import_module("tandem_server.derived.tables")
    wanted = config.traces
    told = None
    if store is not None:
        told = importlib.import_module("tandem_server.derived.run_traces").RunTraces(registry, store).tell
    made: Tabling = tables.Tabling(registry, wanted.folder, Stores(config).at, pool, wanted.reserve_bytes, told)
    return made


def process_pool(workers: int) -> Pool:
    """Each capture in a process of its own: one that is killed takes nothing with it."""
    processes = importlib.import_module("tandem_server.analysis.traces.processes")
    return functools.partial(processes.analysed, workers=workers, apart=True, say=_LOG.warning)


@with_plain_ends
def main(args: Namespace) -> int:
    """Analyse what comes until SIGTERM, which ends it in the midst of whatever it does, or until the gateway is gone."""
    config = load(args.config)
    log_to_stderr()
    os.nice(NICE)
    end_with_parent()
    store = open_rolled(config)
    with open_registry(config) as registry:
        try:
            own = tabling(config, registry, process_pool(config.traces.analyse_workers), store)
        except EnvironmentLacks as error:
            _LOG.warning("captures are not analysed when they come: %s", error)
            return 0
        told = ""
        while True:
            try:
                own.turn(time.time_ns())
                told = ""
            except (OSError, ValueError, TraceStoreDown, StoreDown, QueryError, sqlite3.Error) as error:
                if str(error) != told:  # a full disk is said once, not each minute
                    _LOG.warning("captures are not analysed this time: %s", error)
                told = str(error)
            time.sleep(_PERIOD_S)


if __name__ == "__main__":
    sys.exit(main(Namespace(config=Path(sys.argv[1]))))
