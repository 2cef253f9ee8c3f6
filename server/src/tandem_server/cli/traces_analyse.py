"""``tandem-server traces analyse``: tables of captures by hand, as the process beside the gateway makes them."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from tandem_server.cli.analyse import count, on_dask
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry, open_rolled
from tandem_server.cli.tables_process import process_pool, tabling
from tandem_server.store import QueryError, StoreDown
from tandem_server.uploads.store import TraceStoreDown

if TYPE_CHECKING:
    from tandem_server.derived.tables import Turn


def add_action(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register it, beside the others of ``traces``."""
    sub = actions.add_parser(
        "analyse",
        help="make the tables of captures that have none yet",
        description="Make the tables of captures that came and have none yet, as the server does by itself ([traces] analyse): those of "
        "a run are read together once all of them are here, or a day after the newest came. What is broken is marked with its reason "
        "and costs itself only. It may be broken off: called again, it goes on.",
        epilog="Exit status: 0 what was due is analysed, 1 some could not be and are named, 2 usage, 3 no room, no native pass, a bucket "
        "or Dask workers out of reach. --json: analysed, waiting (for others of their runs), failed (probe, name, why).",
    )
    add_config(sub)
    sub.add_argument(
        "--all", action="store_true", help="also what failed before, and what waits for other captures of its run"
    )
    sub.add_argument("--probe", metavar="NAME", help="of this probe only")
    where = sub.add_mutually_exclusive_group()
    where.add_argument("--workers", type=count, metavar="N", help="processes (default: [traces] analyse_workers)")
    where.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="on the workers of the Dask scheduler there, as `tandem-server analyse --dask`: they share the folder of traces",
    )
    sub.add_argument("--json", action="store_true", help="as JSON")
    sub.set_defaults(func=_analyse)


@with_plain_ends
def _analyse(args: Namespace) -> int:
    config = load(args.config)
    log_to_stderr()
    with open_registry(config) as registry, contextlib.ExitStack() as stack:
        if args.probe is not None and all(probe.name != args.probe for probe in registry.probes.all()):
            raise ConfigError(f"no probe {args.probe!r}; hint: tandem-server probe list")
        pool = (
            process_pool(args.workers or config.traces.analyse_workers)
            if args.dask is None
            else on_dask(stack, args.dask)
        )
        own = tabling(config, registry, pool, open_rolled(config))
        busy = importlib.import_module("tandem_server.analysis.traces.manifest").ManifestError
        try:
            done = own.turn(time.time_ns(), args.probe, everything=args.all)
        except (OSError, TraceStoreDown, StoreDown, QueryError, busy) as error:
            helped = "hint: " in str(error)
            hint = "" if helped else "; hint: make room, or see that the store answers; call it again"
            raise EnvironmentLacks(f"{error}{hint}") from error
    _tell(done, args.json)
    return 1 if done.failed else 0


def _tell(done: Turn, as_json: bool) -> None:
    if as_json:
        failed = [{"probe": p, "name": name, "why": why} for p, name, why in done.failed]
        print(json.dumps({"analysed": done.analysed, "waiting": done.waiting, "failed": failed}, indent=1))
        return
    print(f"{done.analysed} captures analysed, {len(done.failed)} failed, {done.waiting} wait for others of their runs")
